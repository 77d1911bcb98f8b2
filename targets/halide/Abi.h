// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "targets/kernel_abi.h"

namespace kiln::halide {

/// Returns the calling convention of Halide's AOT-compiled code: int f(user context, extents as i32, halide_buffer_t *
/// ...).
const KernelAbi &halideAbi();

/// Emits the load of a tensor's address from its descriptor, for kernels that are generated without Halide.
mlir::Value emitAddressOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value descriptor);

} // namespace kiln::halide
