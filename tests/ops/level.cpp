// SPDX-License-Identifier: Apache-2.0
// Skips the tests of a program if this CPU lacks its instruction set.
#include <gtest/gtest.h>
#include <string_view>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace kiln::testing {
namespace {

bool hasInstructionSet() {
#if defined(__x86_64__)
  return __builtin_cpu_supports(KILN_INSTRUCTION_SET);
#elif defined(__aarch64__)
  return std::string_view(KILN_INSTRUCTION_SET) == "aarch64" || (getauxval(AT_HWCAP) & HWCAP_ASIMDDP);
#endif
}

class NeedsInstructionSet : public ::testing::Environment {
  void SetUp() override {
    if (!hasInstructionSet())
      GTEST_SKIP() << "[  SKIPPED ] this CPU is not of level " KILN_INSTRUCTION_SET; // the words that CTest looks for
  }
};
const auto *const environment = ::testing::AddGlobalTestEnvironment(new NeedsInstructionSet);

} // namespace
} // namespace kiln::testing
