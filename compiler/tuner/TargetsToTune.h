// SPDX-License-Identifier: Apache-2.0
//
// Which targets a run tunes for: those whose code this machine runs, on its CPU or its GPU, or another machine.
#pragma once

#include "compiler/schedule/Machine.h"
#include "compiler/tuner/TrialProgram.h"
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
  unsigned threads; // that there are CPUs for
};

/// Of the named targets those that this machine runs, or the one that `runner` is for, if there is one; `note` hears of
/// each that is left out. May be empty.
std::vector<TargetHere> findTargets(const std::vector<std::string> &names, const RunnerOptions &runner,
                                    const std::function<void(const std::string &)> &note);

} // namespace kiln
