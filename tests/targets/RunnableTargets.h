// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../levels.h"

#include <cstdlib>
#include <string>
#include <vector>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

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
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    add("x86-64-v4");
  if (__builtin_cpu_supports("x86-64-v3"))
    add("x86-64-v3");
#endif
  add(KILN_V2);
  if (names.empty())
    names.push_back(KILN_V2);
  return names;
}

/// Returns these instruction sets, and the levels that differ from them only in kernels with int8 activations.
inline std::vector<std::string> runnableLevels() {
  std::vector<std::string> names = runnableTargets();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni"))
    names.insert(names.begin(), "x86-64-v4-vnni");
#elif defined(__aarch64__)
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP)
    names.insert(names.begin(), KILN_V3);
#endif
  return names;
}

} // namespace kiln::testing
