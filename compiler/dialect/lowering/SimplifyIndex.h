// SPDX-License-Identifier: Apache-2.0
//
// Simplifies affine expressions by the ranges of their dimensions, which MLIR's simplification does not use: with d1 <
// 64, (d0 * 64 + d1) floordiv 64 is d0. Reshapes and slices thus become plain indexing maps.
#pragma once

#include <optional>

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::kiln {

/// `extents[i]`: dimension i is in [0, extents[i]); nullopt: unknown. Expressions must not be negative.
AffineExpr simplifyIndex(AffineExpr expr, llvm::ArrayRef<std::optional<int64_t>> extents);

} // namespace mlir::kiln
