// SPDX-License-Identifier: Apache-2.0
//
// linear and matmul: one reduction over the inner extent; conv2d and attention_scores have their own. A bias is part of
// what reads the result, so that it goes into the same region as the rest of the epilogue.
#include "compiler/transforms/KernelBuilder.h"

namespace mlir::kiln {

bool isContraction(Operation *op) { return isa<LinearOp, MatmulOp, Conv2dOp, AttentionScoresOp>(op); }

/// What is added to each column of the product; null if nothing is.
static Value getBias(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return linear.getBias();
  auto conv = dyn_cast<Conv2dOp>(op);
  return conv ? conv.getBias() : Value();
}

/// The coordinates of an operand's leading axes, which broadcast to those of the result.
static Coordinates leading(ElementBuilder &b, RankedTensorType type, unsigned resultRank) {
  Coordinates result;
  for (int64_t i = 0, end = type.getRank() - 2; i < end; ++i)
    result.push_back(type.getDimSize(i) == 1 ? b.getAffineConstantExpr(0) : b.loop(resultRank - type.getRank() + i));
  return result;
}

SmallVector<Value> decomposeContraction(KernelBuilder &kernel, Operation *op) {
  if (auto conv = dyn_cast<Conv2dOp>(op))
    return decomposeConv2d(kernel, conv);
  if (auto scores = dyn_cast<AttentionScoresOp>(op))
    return decomposeAttentionScores(kernel, scores);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto lhsType = cast<RankedTensorType>(op->getOperand(0).getType());
  auto rhsType = cast<RankedTensorType>(op->getOperand(1).getType());
  unsigned rank = type.getRank();
  SmallVector<AffineExpr> loops = getExtents(type); // ..., m, n, k
  loops.push_back(getExtents(lhsType).back());

  kernel.prepareRepeatedReads(op->getOperand(0));
  kernel.prepareRepeatedReads(op->getOperand(1));
  auto zero = cast<TypedAttr>(FloatAttr::get(type.getElementType(), 0));
  Value product = kernel.createReduction(loops, rank, zero, [&](ElementBuilder &b, ValueRange sum) {
    Coordinates lhs, rhs;
    AffineExpr n = b.loop(rank - 1), k = b.loop(rank);
    bool isTransposed;
    if (auto linear = dyn_cast<LinearOp>(op)) {
      for (unsigned i = 0; i + 1 < rank; ++i)
        lhs.push_back(b.loop(i));
      isTransposed = linear.getOutputDim() == 0;
    } else {
      lhs = leading(b, lhsType, rank);
      lhs.push_back(b.loop(rank - 2));
      rhs = leading(b, rhsType, rank);
      isTransposed = cast<MatmulOp>(op).getTransposeB();
    }
    lhs.push_back(k);
    rhs.push_back(isTransposed ? n : k);
    rhs.push_back(isTransposed ? k : n);
    Value x = b.read(op->getOperand(0), lhs), y = b.read(op->getOperand(1), rhs);
    return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
  })[0];
  if (!getBias(op))
    kernel.setTensor(op->getResult(0), product);
  return {product};
}

Value evaluateContraction(ElementBuilder &b, Operation *op, ArrayRef<Coordinate> at) {
  if (auto scores = dyn_cast<AttentionScoresOp>(op))
    return evaluateAttentionScores(b, scores, at);
  auto conv = dyn_cast<Conv2dOp>(op);
  Value product = conv ? readConv2d(b, conv, at) : b.load(b.kernel.getIntermediates(op)[0], at), bias = getBias(op);
  return bias ? Value(arith::AddFOp::create(b, product, b.read(bias, at.back()))) : product;
}

} // namespace mlir::kiln
