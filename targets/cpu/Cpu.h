// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// x86-64 on Linux, a target a level of its psABI, and Armv8-A on Linux; the best of each architecture first.
std::vector<std::unique_ptr<Target>> createCpuTargets();

} // namespace kiln
