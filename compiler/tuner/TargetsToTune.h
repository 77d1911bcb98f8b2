// SPDX-License-Identifier: Apache-2.0
//
// Which instruction sets a run tunes for.
#pragma once

#include "targets/target.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

/// Of the named targets those that this CPU runs; `note` hears of each that is left out. No names: the best one that it
/// runs. May be empty.
std::vector<std::unique_ptr<Target>> findTargets(const std::vector<std::string> &names,
                                                 const std::function<void(const std::string &)> &note);

} // namespace kiln
