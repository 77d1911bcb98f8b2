// SPDX-License-Identifier: Apache-2.0
//
// Tries the largest number of axes first. An op allows the collapse if it does nothing along these axes and each of its
// operands has either all of them or none.
#include "compiler/transforms/CollapseRows.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

/// Whether the op's results have the axes and the op does nothing along them.
static bool allows(Operation *op, RowCollapser &rows) {
  if (!isa<ConstantOp>(op))
    for (Value result : op->getResults())
      if (!rows.markFull(result))
        return false;
  return cast<KernelOpInterface>(op).collapseRows(rows);
}

RankedTensorType RowCollapse::getType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (!values.contains(value))
    return type;
  SmallVector<AffineExpr> extents = getExtents(type);
  SmallVector<AffineExpr> collapsed{getProduct(ArrayRef(extents).take_front(axes), type.getContext())};
  collapsed.append(extents.begin() + axes, extents.end());
  return getTensorType(collapsed, type.getElementType(), getNumSymbols(type));
}

RowCollapse findRowCollapse(const KernelGroup &group) {
  SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(group.results.back().getType()));
  int64_t rank = extents.size();
  if (group.kind == KernelGroup::Kind::Pointwise)
    --rank; // the last axis stays, to be vectorised
  for (int64_t axes = rank; axes > 1; --axes) {
    RowCollapser rows(ArrayRef(extents).take_front(axes));
    if (llvm::all_of(llvm::reverse(group.ops), [&](Operation *op) { return allows(op, rows); }))
      return {axes, std::move(rows.full)};
  }
  return {};
}

} // namespace mlir::kiln
