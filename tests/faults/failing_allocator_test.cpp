// SPDX-License-Identifier: Apache-2.0
// An allocator that fails from its n-th call on, for each n: the operation returns an error with a message, leaks
// nothing, and leaves the model and the files unchanged.
#include "checkpoints.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

TEST(FailingAllocator, Create) {
  for (int limit = 0;; ++limit) {
    CountingAllocator counter;
    counter.Limit = limit;
    const kiln_allocator_t allocator = counter.get();
    kiln_model_t *model = nullptr;
    kiln_error_t error = {};
    const kiln_status_t status = kiln_create(&allocator, &model, &error);
    kiln_destroy(model);
    EXPECT_EQ(counter.Alive, 0);
    if (status == KILN_OK) {
      EXPECT_EQ(limit, 1) << "the model and nothing else";
      break;
    }
    ASSERT_EQ(status, KILN_OUT_OF_MEMORY);
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(error.message).find(": no memory; expected "), std::string::npos) << error.message;
  }
}

TEST(FailingAllocator, FilesReadAndWritten) {
  Checkpoints files;
  for (const Operation &operation : files.operations()) {
    SCOPED_TRACE(operation.Name);
    files.write("saved", "old");
    const auto before = files.files();
    CountingAllocator counter;
    const kiln_allocator_t allocator = counter.get();
    kiln_model_t *model = Checkpoints::makeZero(&allocator);
    const std::string zeros = packedOf(model);
    const int made = counter.Made, alive = counter.Alive;
    kiln_status_t status = KILN_OUT_OF_MEMORY;
    for (int more = 0; status != KILN_OK && more < 100; ++more) {
      SCOPED_TRACE("after " + std::to_string(more));
      kiln_error_t error = {};
      counter.Limit = counter.Made + more;
      status = operation.Run(model, &error);
      EXPECT_EQ(status, error.status);
      if (status == KILN_OK)
        break;
      ASSERT_EQ(status, KILN_OUT_OF_MEMORY);
      EXPECT_NE(std::string(error.message).find(": no memory; expected "), std::string::npos) << error.message;
      EXPECT_EQ(counter.Alive, alive);
      EXPECT_EQ(packedOf(model), zeros);
      EXPECT_EQ(files.files(), before);
    }
    EXPECT_EQ(status, KILN_OK);
    const std::string_view name = operation.Name;
    if (name != "bind_packed" && name != "save_packed") { // these allocate nothing
      EXPECT_GT(counter.Made, made);
    }
    kiln_destroy(model);
    EXPECT_EQ(counter.Alive, 0);
  }
}

} // namespace
