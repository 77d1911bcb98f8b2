// SPDX-License-Identifier: Apache-2.0
// The tests of a program whose instruction set this CPU lacks are skipped.
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

class NeedsInstructionSet : public ::testing::Environment {
  void SetUp() override {
    if (!__builtin_cpu_supports(KILN_INSTRUCTION_SET))
      GTEST_SKIP() << "[  SKIPPED ] this CPU is not of level " KILN_INSTRUCTION_SET; // in words that CTest looks for
  }
};
const auto *const environment = ::testing::AddGlobalTestEnvironment(new NeedsInstructionSet);

} // namespace
} // namespace kiln::testing
