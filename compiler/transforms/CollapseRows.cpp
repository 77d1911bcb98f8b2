// SPDX-License-Identifier: Apache-2.0
//
// Tries the largest number of axes first. An op allows it if it does nothing along them, and each of its operands
// either has all of them or none.
#include "compiler/transforms/CollapseRows.h"

#include "compiler/dialect/Extents.h"
#include "compiler/transforms/KernelBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kiln {
namespace {

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

class Collapser {
public:
  Collapser(const KernelGroup &group, int64_t axes) : axes(axes) {
    SmallVector<AffineExpr> extents = getExtents(cast<RankedTensorType>(group.results.back().getType()));
    leading.assign(extents.begin(), extents.begin() + axes);
  }

  bool visit(Operation *op) {
    for (Value result : op->getResults())
      if (!isa<ConstantOp>(op) && !markFull(result))
        return false;
    return TypeSwitch<Operation *, bool>(op)
        .Case([&](ConstantOp) { return true; })
        .Case([&](LinearOp linear) {
          return rankOf(linear.getX()) > axes && markFull(linear.getX()) && markWhole(linear.getWeight()) &&
                 (!linear.getBias() || markWhole(linear.getBias()));
        })
        .Case([&](MatmulOp matmul) {
          if (rankOf(matmul.getB()) == 2)
            return rankOf(matmul.getA()) > axes && markFull(matmul.getA()) && markWhole(matmul.getB());
          return rankOf(matmul.getA()) > axes + 1 && rankOf(matmul.getA()) == rankOf(matmul.getB()) &&
                 markFull(matmul.getA()) && markFull(matmul.getB());
        })
        .Case([&](AttentionOp attention) { return visitScores(attention) && markFull(attention.getValue()); })
        .Case([&](AttentionScoresOp scores) { return visitScores(scores); })
        .Case<LayerNormOp, RmsNormOp>([&](Operation *norm) {
          return rankOf(norm->getOperand(0)) > axes && markFull(norm->getOperand(0)) &&
                 llvm::all_of(norm->getOperands().drop_front(), [&](Value operand) {
                   return rankOf(operand) > axes ? markFull(operand) : markWhole(operand);
                 });
        })
        .Case([&](PanelMomentsOp moments) { return rankOf(moments.getX()) > axes && markFull(moments.getX()); })
        .Case(
            [&](EmbeddingOp embedding) { return markFull(embedding.getIndices()) && markWhole(embedding.getTable()); })
        .Case<SoftmaxOp, LogSoftmaxOp, MeanOp, MaxOp, SumOp, ArgmaxOp, SliceOp>(
            [&](auto reduction) { return int64_t(reduction.getAxis()) >= axes && markFull(reduction.getX()); })
        .Case([&](ConcatOp concat) {
          return int64_t(concat.getAxis()) >= axes &&
                 llvm::all_of(concat.getInputs(), [&](Value input) { return markFull(input); });
        })
        .Case([&](TransposeOp transpose) {
          return llvm::equal(transpose.getPermutation().take_front(axes), llvm::seq<int64_t>(axes)) &&
                 markFull(transpose.getX());
        })
        .Default([&](Operation *other) {
          if (!isPointwise(other))
            return false;
          int64_t rank = rankOf(other->getResult(0));
          return llvm::all_of(other->getOperands(), [&](Value operand) {
            if (rankOf(operand) == rank)
              return markFull(operand);
            return rankOf(operand) <= rank - axes && markWhole(operand);
          });
        });
  }

  llvm::SmallDenseSet<Value> full, whole;

private:
  template <class Op> bool visitScores(Op op) {
    int64_t batchRank = rankOf(op.getQuery()) - 2;
    Value mask = op.getMask(), lengths = op.getLengths();
    if (mask && rankOf(mask) == batchRank + 3 && !markFull(mask))
      return false;
    return axes <= batchRank && markFull(op.getQuery()) && markFull(op.getKey()) && (!lengths || markFull(lengths)) &&
           (!mask || (rankOf(mask) <= 2 ? markWhole(mask) : rankOf(mask) >= batchRank + 2 && markFull(mask)));
  }
  bool markFull(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() < axes || ArrayRef(getExtents(type)).take_front(axes) != ArrayRef(leading) ||
        whole.contains(value))
      return false;
    full.insert(value);
    return true;
  }
  bool markWhole(Value value) {
    whole.insert(value);
    return !full.contains(value);
  }

  int64_t axes;
  SmallVector<AffineExpr> leading;
};

} // namespace

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
  int64_t rank = rankOf(group.results.back());
  if (group.kind == KernelGroup::Kind::Pointwise)
    --rank; // the last axis stays, to be vectorised
  for (int64_t axes = rank; axes > 1; --axes) {
    Collapser collapser(group, axes);
    // Last to first, so that what a value is to its users is known before its own op is asked.
    if (llvm::all_of(llvm::reverse(group.ops), [&](Operation *op) { return collapser.visit(op); }))
      return {axes, std::move(collapser.full)};
  }
  return {};
}

} // namespace mlir::kiln
