// SPDX-License-Identifier: Apache-2.0
//
// The result type of each op from its operands and attributes, with the op's rules checked on the way. It serves
// construction and verification alike, so the rules exist once. This is what the files of this folder share.
#pragma once

#include "compiler/dialect/Check.h"

namespace mlir::kiln {

inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A type with these extents, over as many symbols as the operands have.
template <class Adaptor> RankedTensorType resultType(Adaptor op, ArrayRef<AffineExpr> extents, Type element) {
  return getTensorType(extents, element, getNumSymbols(op.getOperands().getTypes()));
}

/// The checks that come first for every op.
template <class Adaptor> LogicalResult checkOperands(Adaptor op, const Check &check) {
  return check.extents(op.getOperands().getTypes());
}

} // namespace mlir::kiln

#define KILN_INFER(OP)                                                                                                 \
  LogicalResult OP::inferReturnTypes([[maybe_unused]] MLIRContext *context, std::optional<Location> location,          \
                                     Adaptor op, SmallVectorImpl<Type> &types)
