// SPDX-License-Identifier: Apache-2.0
//
// Selects the targets to tune: those whose code runs on this machine's CPU or GPU, or on another machine.
#pragma once

#include "compiler/schedule/Machine.h"
#include "compiler/tuner/MeasurementProgram.h"
#include "targets/registry.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln {

/// Returns the machine on which measurements of the target's code are taken. Fails with the reason if this machine
/// cannot run it. Queries a GPU's driver in a child process: a process that has initialised the driver cannot use it in
/// children.
llvm::Expected<Machine> findMachine(const TargetInfo &target);

struct TargetHere {
  const Target *target;
  Machine machine;
  unsigned threads; // as many as there are CPUs
};

/// Returns those of the named targets that this machine runs, or the one for which `runner` is, if there is one; calls
/// `note` for each skipped target. May be empty.
std::vector<TargetHere> findTargets(const std::vector<std::string> &names, const RunnerOptions &runner,
                                    const std::function<void(const std::string &)> &note);

} // namespace kiln
