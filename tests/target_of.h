// SPDX-License-Identifier: Apache-2.0
//
// Targets whose kernel compilers a test supplies.
#pragma once

#include "targets/target.h"

namespace kiln::testing {

/// Returns a target with these compilers, of which the first that accepts a kernel compiles it.
template <class... Compilers>
Target targetOf(const TargetInfo &info, const TargetHooks &hooks, std::unique_ptr<Compilers>... compilers) {
  std::vector<std::unique_ptr<KernelCompiler>> all;
  (all.push_back(std::move(compilers)), ...);
  return Target(info, hooks, std::move(all));
}

} // namespace kiln::testing
