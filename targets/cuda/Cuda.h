// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/target.h"

namespace kiln {

/// Creates the target "cuda": all NVIDIA GPUs from compute capability 8.0 on. A kernel holds code for each. There is a
/// form for each architecture of the CPU that calls the GPU: they differ in their host code only. A build without
/// KILN_CUDA has CudaNone.cpp in place of this folder, and no such target.
std::vector<std::unique_ptr<Target>> createCudaTargets();

} // namespace kiln
