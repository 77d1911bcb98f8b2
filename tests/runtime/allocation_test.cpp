// SPDX-License-Identifier: Apache-2.0
// No allocation inside an entry: every allocation of this program, libc's included, is counted by a malloc of its own.
#include "support.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <gtest/gtest.h>

static std::atomic<long> Allocations = 0;

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
  ++Allocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  ++Allocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  ++Allocations;
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  ++Allocations;
  return __libc_memalign(alignment, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  ++Allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  ++Allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}

namespace {

using namespace kiln_test;

TEST(Allocation, IsCounted) {
  long before = Allocations;
  kiln_model_t *model = nullptr;
  ASSERT_EQ(kiln_create(nullptr, &model, nullptr), KILN_OK);
  EXPECT_EQ(Allocations, before + 1) << "create allocates the model";
  const std::string image = makeImage(testWeights());
  before = Allocations;
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), nullptr), KILN_OK);
  EXPECT_EQ(Allocations, before + 1) << "bind_weights allocates an index; the packed copy is mapped";
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

  long before = Allocations;
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
  EXPECT_EQ(Allocations, before);
  EXPECT_EQ(rows, expectedRows(ids));
  kiln_pool_destroy(pool);
  kiln_destroy(model);
}

} // namespace
