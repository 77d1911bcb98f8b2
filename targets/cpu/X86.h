// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// x86-64 on Linux, a target a level of its psABI, the best first.
std::vector<std::unique_ptr<Target>> createX86Targets();

} // namespace kiln
