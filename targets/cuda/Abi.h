// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/kernel_abi.h"

namespace kiln::cuda {

/// int f(worker, extents as i32, addresses of tensors on the device); results behind arguments.
const KernelAbi &cudaAbi();

} // namespace kiln::cuda
