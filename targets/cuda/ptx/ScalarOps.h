// SPDX-License-Identifier: Apache-2.0
//
// Translates arith and math ops of a kernel's regions to scalar ops of a device function. 16-bit floats are computed
// in f32; NaN and infinities follow IEEE 754. Ops with the attribute kiln.strict are not contracted to FMA; all others
// may be.
#pragma once

#include "targets/cuda/tile/Builder.h"

namespace kiln::cuda {

/// Returns a scalar's type on the device: the same type in the builder's context, i32 for an index. Returns null if
/// there is none.
mlir::Type deviceType(tile::Builder &b, mlir::Type type);

/// Translates one arith or math op, given its translated operands; returns null if it has no translation.
tile::Value translateScalarOp(tile::Builder &b, mlir::Operation *op, llvm::ArrayRef<tile::Value> operands);

/// Translates the value of an arith.constant; returns null if it has no translation.
tile::Value translateConstant(tile::Builder &b, mlir::TypedAttr value);

} // namespace kiln::cuda
