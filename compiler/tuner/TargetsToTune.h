// SPDX-License-Identifier: Apache-2.0
//
// Which instruction sets a run tunes for.
#pragma once

#include "targets/registry.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln {

/// Whether the CPU of this process can run the target's code.
bool runsHere(const TargetInfo &target);

/// Of the named targets those that this CPU runs; `note` hears of each that is left out. No names: the best one that it
/// runs. May be empty.
std::vector<const Target *> findTargets(const std::vector<std::string> &names,
                                        const std::function<void(const std::string &)> &note);

} // namespace kiln
