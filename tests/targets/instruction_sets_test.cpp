// SPDX-License-Identifier: Apache-2.0
//
// Kernels are tested on the instruction sets that this machine runs, or that KILN_TEST_TARGETS names. Each other
// instruction set is a skipped test here, so that the output of a run lists it.
#include "RunnableTargets.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

class InstructionSets : public ::testing::TestWithParam<std::string> {};

TEST_P(InstructionSets, AreRunHere) {
  const std::vector<std::string> runnable = runnableLevels();
  if (std::find(runnable.begin(), runnable.end(), GetParam()) == runnable.end())
    GTEST_SKIP() << "this CPU has no " << GetParam()
                 << ", or KILN_TEST_TARGETS leaves it out: no kernel was tested on it";
}

INSTANTIATE_TEST_SUITE_P(All, InstructionSets,
                         ::testing::Values("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"),
                         [](const auto &info) {
                           return "v" + info.param.substr(8, 1) + (info.param.size() > 9 ? "vnni" : "");
                         });

} // namespace
} // namespace kiln::testing
