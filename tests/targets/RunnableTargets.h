// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace kiln::testing {

/// Returns the instruction sets that this machine can run. KILN_TEST_TARGETS in the environment, such as
/// "x86-64-v4,x86-64-v2", selects some of them.
inline std::vector<std::string> runnableTargets() {
  std::vector<std::string> names;
  const char *wanted = std::getenv("KILN_TEST_TARGETS");
  const auto add = [&](const std::string &name) {
    if (!wanted || ("," + std::string(wanted) + ",").find("," + name + ",") != std::string::npos)
      names.push_back(name);
  };
  if (__builtin_cpu_supports("x86-64-v4"))
    add("x86-64-v4");
  if (__builtin_cpu_supports("x86-64-v3"))
    add("x86-64-v3");
  add("x86-64-v2");
  if (names.empty())
    names.push_back("x86-64-v2");
  return names;
}

/// Returns these instruction sets, and the levels that differ from them only in kernels with int8 activations.
inline std::vector<std::string> runnableLevels() {
  std::vector<std::string> names = runnableTargets();
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni"))
    names.insert(names.begin(), "x86-64-v4-vnni");
  return names;
}

} // namespace kiln::testing
