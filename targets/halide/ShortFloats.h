// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16 in Halide's code. An element of theirs is its bits (u16), in tensors and in regions alike, since
// Halide's own types of that kind are slow and rounded by calls; arith.extf makes a float of them, arith.truncf rounds
// to them.
#pragma once

#include "Halide.h"
#include "mlir/IR/Types.h"
#include "targets/halide/VectorFunctions.h"

namespace kiln::halide {

/// The float that these bits of an f16 or bf16 are. Infinities and NaN stay such.
Halide::Expr widen(mlir::Type type, const Halide::Expr &bits, const VectorFunctions &functions);

/// The bits of the nearest f16 or bf16, ties to even, beyond the largest one those of an infinity; NaN stays NaN.
Halide::Expr narrow(mlir::Type type, const Halide::Expr &number, const VectorFunctions &functions);

} // namespace kiln::halide
