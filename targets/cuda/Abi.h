// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/kernel_abi.h"

namespace kiln::cuda {

/// The ABI of a kernel's host launcher: int f(worker, dimensions as i32, device addresses of tensors). Results follow
/// the arguments.
const KernelAbi &cudaAbi();

} // namespace kiln::cuda
