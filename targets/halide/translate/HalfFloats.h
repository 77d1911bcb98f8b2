// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16 in Halide code. An element is represented by its bits (u16), in tensors and in regions alike, since
// Halide's own types of that kind are slow and rounded by library calls. arith.extf converts an element to f32,
// arith.truncf rounds to it.
#pragma once

#include "mlir/IR/Types.h"
#include "targets/halide/Compat.h"
#include "targets/halide/translate/VectorFunctions.h"

namespace kiln::halide {

/// Converts the bits of an f16 or bf16 to f32. Infinities and NaN are preserved.
Halide::Expr widen(mlir::Type type, const Halide::Expr &bits, const VectorFunctions &functions);

/// Returns the bits of the nearest f16 or bf16, ties to even. Values past the largest one become infinite; NaN stays
/// NaN.
Halide::Expr narrow(mlir::Type type, const Halide::Expr &number, const VectorFunctions &functions);

} // namespace kiln::halide
