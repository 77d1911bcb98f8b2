// SPDX-License-Identifier: Apache-2.0
//
// Which targets a run tunes for: those whose code this machine runs, on its CPU or its GPU.
#pragma once

#include "compiler/schedule/Machine.h"
#include "targets/registry.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln {

/// What measurements of the target's code are taken on here. Fails where this machine cannot run it, saying why. A
/// GPU's driver is asked in a child process: one that has started it can have no children that use it.
llvm::Expected<Machine> findMachine(const TargetInfo &target);

struct TargetHere {
  const Target *target;
  Machine machine;
};

/// Of the named targets those that this machine runs; `note` hears of each that is left out. No names: the best one of
/// the CPU. May be empty.
std::vector<TargetHere> findTargets(const std::vector<std::string> &names,
                                    const std::function<void(const std::string &)> &note);

} // namespace kiln
