// SPDX-License-Identifier: Apache-2.0
// A generated entry allocates no memory, with any executor, whether the call succeeds or not.
#include "session.h"
#include "small.h"
#include "tests/runtime/allocations.h"

namespace kiln::testing {
namespace {

TEST(GeneratedEntry, AllocatesNothing) {
  constexpr std::int64_t batch = 3, tokens = 12;
  Session<small_t> session(KILN_TEST_LIBRARY(small, SMALL_WEIGHTS));
  std::vector<std::int32_t> words(batch * tokens, 4), lengths{12, 1, 7}, wrong{12, 13, 7};
  std::vector<float> logits(batch * tokens * 11);
  GuardedMemory arena(SMALL_FORWARD_ARENA_BYTES(3), Guard::front);
  kiln_error_t error{};

  using kiln_test::allocations;
  long before = allocations();
  void *probe = ::operator new(10); // a direct call, which compilers do not elide
  ::operator delete(probe);
  EXPECT_GT(allocations(), before) << "the count works";

  int failures = 0;
  before = allocations();
  for (int repeat = 0; repeat < 50; ++repeat)
    for (std::uint32_t workers : {1u, 2u, 3u}) {
      const kiln_call_t call{arena.data(), arena.size(), session.executor(workers), &error};
      failures +=
          small_forward(session.get(), &call, batch, tokens, words.data(), lengths.data(), logits.data()) != KILN_OK;
      failures += small_forward(session.get(), &call, batch, tokens, words.data(), wrong.data(), logits.data()) !=
                  KILN_INDEX_OUT_OF_RANGE;
    }
  const long after = allocations();
  EXPECT_EQ(after, before);
  EXPECT_EQ(failures, 0) << error.message;
}

} // namespace
} // namespace kiln::testing
