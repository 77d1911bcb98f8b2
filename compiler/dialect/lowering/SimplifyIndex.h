// SPDX-License-Identifier: Apache-2.0
//
// Simplification of affine expressions by the ranges of their dimensions, which MLIR's own does not know: with d1 < 64,
// (d0 * 64 + d1) floordiv 64 is d0. Reshapes and slices become plain indexing maps that way.
#pragma once

#include <optional>

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::kiln {

/// `extents[i]`: dimension i lies in [0, extents[i]); nothing: not known. Expressions are not negative.
AffineExpr simplifyIndex(AffineExpr expr, llvm::ArrayRef<std::optional<int64_t>> extents);

} // namespace mlir::kiln
