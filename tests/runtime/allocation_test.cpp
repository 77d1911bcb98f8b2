// SPDX-License-Identifier: Apache-2.0
// Entries must not allocate memory.
#include "allocations.h"
#include "support.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

TEST(Allocation, IsCounted) {
  long before = allocations();
  kiln_model_t *model = nullptr;
  ASSERT_EQ(kiln_create(nullptr, &model, nullptr), KILN_OK);
  EXPECT_EQ(allocations(), before + 1) << "create allocates the model";
  const std::string image = makeImage(testWeights());
  before = allocations();
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), nullptr), KILN_OK);
  EXPECT_EQ(allocations(), before + 1) << "bind_weights allocates an index; the packed copy is mapped";
  kiln_destroy(model);
}

TEST(Allocation, NoneInsideAnEntry) {
  constexpr uint32_t Workers = 3;
  kiln_model_t *model = nullptr;
  kiln_pool_t *pool = nullptr;
  kiln_error_t error = {};
  const std::string image = makeImage(testWeights());
  ASSERT_EQ(kiln_create(nullptr, &model, nullptr), KILN_OK);
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), nullptr), KILN_OK);
  ASSERT_EQ(kiln_pool_create(Workers, &pool, nullptr), KILN_OK);
  GuardedMemory arena(4096);
  std::vector<int32_t> ids = {4, 3, 2, 1, 0, 4, 3, 2}, badIds = {4, 3, 2, 1, 0, 4, 3, 9};
  std::vector<float> rows(ids.size() * Width);
  const int64_t extents[] = {static_cast<int64_t>(ids.size())}, badExtents[] = {0};
  void *const arguments[] = {ids.data(), rows.data()}, *const badArguments[] = {badIds.data(), rows.data()};

  long before = allocations();
  for (int repeat = 0; repeat < 100; ++repeat) {
    for (const kiln_executor_t *executor : {static_cast<const kiln_executor_t *>(nullptr), kiln_pool_executor(pool)}) {
      const kiln_call_t call = {arena.data(), arena.size(), executor, &error};
      const kiln_call_t badCall = {arena.data(), 0, executor, &error};
      if (kiln_run(model, &call, 0, extents, arguments) != KILN_OK ||
          kiln_run(model, &call, 1, extents, arguments) != KILN_INTERNAL_ERROR ||
          kiln_run(model, &call, 0, badExtents, arguments) != KILN_EXTENT_OUT_OF_RANGE ||
          kiln_run(model, &call, 0, extents, badArguments) != KILN_INDEX_OUT_OF_RANGE ||
          kiln_run(model, &badCall, 0, extents, arguments) != KILN_ARENA_TOO_SMALL)
        FAIL() << error.message;
    }
  }
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(rows, expectedRows(ids));
  kiln_pool_destroy(pool);
  kiln_destroy(model);
}

} // namespace
