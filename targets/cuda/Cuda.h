// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// GPUs of NVIDIA from compute capability 8.0 on, as one target, "cuda": a kernel holds code for each.
std::vector<std::unique_ptr<Target>> createCudaTargets();

} // namespace kiln
