// SPDX-License-Identifier: Apache-2.0
//
// A loop alone in a map of linalg.generic states that the operand's extent is the loop's. A slice that begins with the
// first element has the loop's index, too, but an operand with more elements. There the map has the index as the
// remainder of a division by a number that no index reaches, as no tensor has more than 2147483647 elements.
#pragma once

#include <limits>

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::kiln {

/// The index of a loop in an operand that has more elements than the loop has iterations.
inline AffineExpr getPartialIndex(AffineExpr loop) { return loop % std::numeric_limits<int32_t>::max(); }

/// The loop of such an index; any other index as it is.
inline AffineExpr withoutPartial(AffineExpr index) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  auto divisor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : AffineConstantExpr();
  const bool isPartial =
      divisor && index.getKind() == AffineExprKind::Mod && divisor.getValue() == std::numeric_limits<int32_t>::max();
  return isPartial ? binary.getLHS() : index;
}

/// The map with such indices as the loops.
inline AffineMap withoutPartial(AffineMap map) {
  SmallVector<AffineExpr> indices =
      llvm::map_to_vector(map.getResults(), [](AffineExpr index) { return withoutPartial(index); });
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), indices, map.getContext());
}

} // namespace mlir::kiln
