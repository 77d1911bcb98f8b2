// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// Returns the CPU targets: one for each level of each architecture and operating system, the best level first.
std::vector<std::unique_ptr<Target>> createCpuTargets();

} // namespace kiln
