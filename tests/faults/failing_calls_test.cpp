// SPDX-License-Identifier: Apache-2.0
// Each system call of all operations that read or write files fails once: either the operation returns an error with a
// message and leaves the model and the files unchanged, or it succeeds; nothing stays open or mapped. Interrupted calls
// are repeated, and partial writes are continued.
#include "checkpoints.h"
#include "failing_system.h"

#include <gtest/gtest.h>

namespace {

#ifdef KILN_WITHOUT_PAGES
constexpr bool HasPages = false;
#else
constexpr bool HasPages = true;
#endif

using namespace kiln_test;

size_t openFiles() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

class FailingCalls : public testing::Test {
protected:
  ~FailingCalls() override { Calls = {}; }

  /// Runs the operation on a model of zeros, and checks the state afterwards.
  kiln_status_t run(const Operation &operation, System calls) {
    Files.write("saved", "old");
    const auto before = Files.files();
    const size_t opened = openFiles();
    Calls = {};
    Calls.IsWatched = true;
    kiln_model_t *model = Checkpoints::makeZero();
    const std::string zeros = packedOf(model);
    kiln_error_t error = {};
    calls.IsWatched = true;
    calls.Mapped = Calls.Mapped;
    Calls = calls;
    const kiln_status_t status = operation.Run(model, &error);
    Calls.FailAt = 0;
    Calls.Interrupts = false;
    EXPECT_EQ(status, error.status);
    EXPECT_EQ(openFiles(), opened);
    if (HasPages) {
      EXPECT_EQ(Calls.Mapped, model->packed_kind != KILN_PACKED_ALLOCATED);
    }
    if (status) {
      EXPECT_TRUE(status == KILN_FILE_ERROR || status == KILN_OUT_OF_MEMORY) << status;
      EXPECT_NE(std::string(error.message).find("\": Input/output error"), std::string::npos) << error.message;
      EXPECT_EQ(Files.files(), before);
      EXPECT_EQ(packedOf(model), zeros);
    } else if (operation.IsWriting) {
      EXPECT_NE(Files.files()["saved"], "old");
      EXPECT_EQ(Files.files().size(), before.size());
    } else {
      EXPECT_NE(packedOf(model), zeros);
    }
    Given = operation.IsWriting ? Files.files()["saved"] : packedOf(model);
    kiln_destroy(model);
    EXPECT_EQ(Calls.Mapped, 0);
    return status;
  }

  Checkpoints Files;
  std::string Given; // the written bytes, or the packed weights that were read
};

TEST_F(FailingCalls, EachOnce) {
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    int failed = 0;
    System calls;
    do {
      ++calls.FailAt;
      SCOPED_TRACE("call " + std::to_string(calls.FailAt));
      failed += run(operation, calls) != KILN_OK;
    } while (Calls.Made >= calls.FailAt && calls.FailAt < 1000);
    EXPECT_GE(failed, 3) << "opening, and what follows";
  }
}

TEST_F(FailingCalls, InterruptedOnesAreRepeated) {
  System calls;
  calls.Interrupts = true;
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    EXPECT_EQ(run(operation, calls), KILN_OK);
  }
}

TEST_F(FailingCalls, PartsAreGoneOnFrom) {
  System parts;
  parts.MostMoved = 7;
  for (const Operation &operation : Files.operations()) {
    SCOPED_TRACE(operation.Name);
    ASSERT_EQ(run(operation, {}), KILN_OK);
    const std::string whole = Given;
    ASSERT_EQ(run(operation, parts), KILN_OK);
    EXPECT_EQ(Given, whole);
  }
}

} // namespace
