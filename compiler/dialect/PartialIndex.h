// SPDX-License-Identifier: Apache-2.0
//
// In a map of linalg.generic, a plain loop index means that the operand's extent is the loop's. A slice from the first
// element on has the same index, but a longer operand. Its map uses the index modulo 2147483647 instead, a number that
// no index reaches, as no tensor has more elements than that.
#pragma once

#include <limits>

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::kiln {

/// Returns the index of a loop in an operand that has more elements than the loop has iterations.
inline AffineExpr getPartialIndex(AffineExpr loop) { return loop % std::numeric_limits<int32_t>::max(); }

/// Returns the loop of such an index, and any other index unchanged.
inline AffineExpr withoutPartial(AffineExpr index) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  auto divisor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  const bool isPartial =
      divisor && index.getKind() == AffineExprKind::Mod && divisor.getValue() == std::numeric_limits<int32_t>::max();
  return isPartial ? binary.getLHS() : index;
}

/// Returns the map with such indices replaced by the loops.
inline AffineMap withoutPartial(AffineMap map) {
  SmallVector<AffineExpr> indices =
      llvm::map_to_vector(map.getResults(), [](AffineExpr index) { return withoutPartial(index); });
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), indices, map.getContext());
}

} // namespace mlir::kiln
