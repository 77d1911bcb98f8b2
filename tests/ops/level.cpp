// SPDX-License-Identifier: Apache-2.0
// Skips the tests of a program if this CPU lacks its instruction set.
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

class NeedsInstructionSet : public ::testing::Environment {
  void SetUp() override {
    if (!__builtin_cpu_supports(KILN_INSTRUCTION_SET))
      GTEST_SKIP() << "[  SKIPPED ] this CPU is not of level " KILN_INSTRUCTION_SET; // the words that CTest looks for
  }
};
const auto *const environment = ::testing::AddGlobalTestEnvironment(new NeedsInstructionSet);

} // namespace
} // namespace kiln::testing
