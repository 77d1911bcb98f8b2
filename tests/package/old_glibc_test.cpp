// SPDX-License-Identifier: Apache-2.0
//
// The functions that packages have in place of newer glibc's. This program has them too, and the static unwinder.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <set>
#include <stdexcept>

extern "C" uint32_t arc4random();

namespace {

using Find = int (*)(void *, dl_find_object *);

/// Returns glibc's function, which this program's own one hides from the linker.
Find glibcFind() { return reinterpret_cast<Find>(dlvsym(RTLD_NEXT, "_dl_find_object", "GLIBC_2.35")); }

TEST(OldGlibc, FindsTheTablesThatGlibcFinds) {
  const Find expected = glibcFind();
  if (!expected)
    GTEST_SKIP() << "glibc is older than 2.35";
  int onStack = 0;
  void *const places[] = {reinterpret_cast<void *>(&glibcFind), reinterpret_cast<void *>(&std::printf),
                          reinterpret_cast<void *>(expected), &onStack, nullptr};
  for (void *place : places) {
    dl_find_object found{}, wanted{};
    const int status = expected(place, &wanted);
    EXPECT_EQ(_dl_find_object(place, &found), status) << place;
    if (status == 0) {
      EXPECT_EQ(found.dlfo_eh_frame, wanted.dlfo_eh_frame) << place;
      EXPECT_LE(found.dlfo_map_start, place);
      EXPECT_GT(found.dlfo_map_end, place);
    }
  }
}

[[gnu::noinline]] int throwAt(int depth) {
  if (depth == 0)
    throw std::runtime_error("thrown");
  return throwAt(depth - 1) + 1;
}

TEST(OldGlibc, ExceptionsAreCaught) {
  EXPECT_THROW(throwAt(50), std::runtime_error);
  EXPECT_THROW(static_cast<void>(std::stoi("none")), std::invalid_argument);
}

TEST(OldGlibc, RandomNumbersDiffer) {
  std::set<uint32_t> numbers;
  for (int i = 0; i < 16; ++i)
    numbers.insert(arc4random());
  EXPECT_GT(numbers.size(), 8u); // fewer have a probability below 2^-200
}

} // namespace
