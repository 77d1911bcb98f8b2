// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// Creates the target "cuda": all NVIDIA GPUs from compute capability 8.0 on. A kernel holds code for each.
std::vector<std::unique_ptr<Target>> createCudaTargets();

} // namespace kiln
