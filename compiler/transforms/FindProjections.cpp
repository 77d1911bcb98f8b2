// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/FindProjections.h"

#include "compiler/dialect/Extents.h"

#include <numeric>

namespace mlir::kiln {

Value getOutside(Value value) {
  auto slice = dyn_cast<BlockArgument>(value);
  auto loop = slice ? dyn_cast<EachSequenceOp>(slice.getOwner()->getParentOp()) : EachSequenceOp();
  return loop ? loop.getWholes()[slice.getArgNumber()] : value;
}

Block *getOutside(Block *block) {
  return isa<EachSequenceOp>(block->getParentOp()) ? block->getParentOp()->getBlock() : block;
}

AppendOp keptRows(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto append = dyn_cast<AppendOp>(op))
      return append;
    if (!isDecoding(op) && !hasRole(op, KernelRole::Movement))
      break;
    value = op->getOperand(0);
  }
  return {};
}

/// Whether the op may stand between a linear and attention: rotary positions, norms of heads, scales of rows and
/// similar, but no op that accumulates products.
static bool mayStandBetween(Operation *op) {
  auto inKernel = dyn_cast_or_null<KernelOpInterface>(op);
  return inKernel && !addsProducts(inKernel.getKernelRole());
}

SmallVector<LinearOp> findLinears(Value value) {
  SmallVector<LinearOp> linears;
  llvm::SetVector<Operation *> reached;
  auto reach = [&](Value next) {
    if (Operation *op = getOutside(next).getDefiningOp())
      reached.insert(op);
  };
  reach(value);
  for (size_t i = 0; i < reached.size(); ++i)
    if (auto linear = dyn_cast<LinearOp>(reached[i]))
      linears.push_back(linear);
    else if (mayStandBetween(reached[i]))
      llvm::for_each(reached[i]->getOperands(), reach);
  return linears;
}

bool splitsColumns(ReshapeOp view) {
  auto from = cast<RankedTensorType>(view.getX().getType()), to = cast<RankedTensorType>(view.getType());
  const size_t kept = from.getRank() - 1;
  return to.getRank() > from.getRank() && !from.isDynamicDim(kept) &&
         !ShapedType::isDynamicShape(to.getShape().drop_front(kept)) &&
         ArrayRef(getExtents(from)).take_front(kept) == ArrayRef(getExtents(to)).take_front(kept);
}

int64_t getUnsplitColumns(LinearOp linear) {
  int64_t columns = 1;
  for (Operation *user : linear->getUsers())
    if (auto view = dyn_cast<ReshapeOp>(user))
      columns = std::lcm(
          columns, ShapedType::getNumElements(cast<RankedTensorType>(view.getType())
                                                  .getShape()
                                                  .drop_front(cast<RankedTensorType>(linear.getType()).getRank())));
  return columns;
}

/// Whether the value reaches only attention and appended state rows, through ops that may stand between.
static bool leadsToAttention(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    for (OpOperand &use : reached[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto loop = dyn_cast<EachSequenceOp>(user))
        reached.insert(loop.getBody().getArgument(use.getOperandNumber()));
      else if (mayStandBetween(user))
        reached.insert(user->result_begin(), user->result_end());
      else if (!isa<AppendOp, AttentionOp, AttentionScoresOp>(user))
        return false;
    }
  return true;
}

/// Whether a joined linear can serve this use. Arithmetic directly on the result would be fused as the epilogue of the
/// linear's kernel, but not of a joined one's. Only rows of a state may be rounded to fewer bits.
static bool isRead(OpOperand &use, bool onlyKept) {
  Operation *user = use.getOwner();
  auto all = [](Value value, bool onlyKept) {
    return llvm::all_of(value.getUses(), [&](OpOperand &next) { return isRead(next, onlyKept); });
  };
  if (auto loop = dyn_cast<EachSequenceOp>(user))
    return all(loop.getBody().getArgument(use.getOperandNumber()), onlyKept);
  if (auto rounded = dyn_cast<CastOp>(user))
    return all(rounded, true);
  if (auto view = dyn_cast<ReshapeOp>(user))
    return !onlyKept && isa_and_nonnull<LinearOp>(view.getX().getDefiningOp()) && splitsColumns(view) &&
           leadsToAttention(view);
  return isa<AppendOp>(user) || (!onlyKept && isa<AttentionOp, AttentionScoresOp>(user));
}

bool isProjection(LinearOp linear) {
  return llvm::all_of(linear->getUses(), [](OpOperand &use) { return isRead(use, false); });
}

} // namespace mlir::kiln
