// SPDX-License-Identifier: Apache-2.0
//
// Infers the result type of each op from its operands and attributes, and checks the op's rules. Construction and
// verification share it, so that the rules exist once. This header is shared by the files of this folder.
#pragma once

#include "compiler/dialect/Check.h"

namespace mlir::kiln {

inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns a type with these extents, over as many symbols as the operands have.
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
