// SPDX-License-Identifier: Apache-2.0
//
// For builds without KILN_CUDA: there is no target for GPUs.
#include "targets/cuda/Cuda.h"

namespace kiln {

std::vector<std::unique_ptr<Target>> createCudaTargets() { return {}; }

} // namespace kiln
