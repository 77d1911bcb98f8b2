// SPDX-License-Identifier: Apache-2.0
//
// arith and math ops of a kernel's regions on scalars of a device function. Floats of 16 bits are computed with in f32;
// NaN and infinities are what IEEE 754 says. Ops with the attribute kiln.strict are not contracted; all others may be.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda {

/// The type of a scalar on the device: the same one of the builder's context, i32 for an index. Null if there is none.
mlir::Type deviceType(tile::Builder &b, mlir::Type type);

/// One arith or math op on translated operands; null if it has no translation.
tile::Value translateScalarOp(tile::Builder &b, mlir::Operation *op, llvm::ArrayRef<tile::Value> operands);

/// What an arith.constant of a kernel is; null if it has no translation.
tile::Value translateConstant(tile::Builder &b, mlir::TypedAttr value);

} // namespace kiln::cuda
