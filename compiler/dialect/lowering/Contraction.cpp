// SPDX-License-Identifier: Apache-2.0
//
// linear and matmul: one reduction over the inner extent. A bias is part of what reads the result, so that it goes into
// the same region as the rest of the epilogue; so is the rounding of sums in f32 to a shorter float.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

namespace {

/// The coordinates of an operand's leading axes, which broadcast to those of the result.
Coordinates leading(ElementBuilder &b, RankedTensorType type, unsigned resultRank) {
  Coordinates result;
  for (int64_t i = 0, end = type.getRank() - 2; i < end; ++i)
    result.push_back(type.getDimSize(i) == 1 ? b.getAffineConstantExpr(0) : b.loop(resultRank - type.getRank() + i));
  return result;
}

/// How the loops m, n, k of a product (`rank` is that of m, n) read its operands.
using Readers = function_ref<std::pair<Coordinates, Coordinates>(ElementBuilder &)>;

AffineExpr depthOf(Operation *op) { return getExtents(cast<RankedTensorType>(op->getOperand(0).getType())).back(); }

Value multiply(KernelBuilder &kernel, KernelOpInterface op, Readers coordinatesOf) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  unsigned rank = type.getRank();
  SmallVector<AffineExpr> loops = getExtents(type); // ..., m, n, k
  loops.push_back(depthOf(op));

  kernel.prepareRepeatedReads(op->getOperand(0));
  kernel.prepareRepeatedReads(op->getOperand(1));
  Type accumulator = op.getAccumulatorType();
  auto zero = cast<TypedAttr>(FloatAttr::get(accumulator, 0));
  return kernel.createReduction(loops, rank, zero, [&](ElementBuilder &b, ValueRange sum) {
    auto [lhs, rhs] = coordinatesOf(b);
    Value x = b.convert(b.read(op->getOperand(0), lhs), accumulator);
    Value y = b.convert(b.read(op->getOperand(1), rhs), accumulator);
    return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
  })[0];
}

} // namespace

//===- linear ---===//

SmallVector<Value> LinearOp::decompose(KernelBuilder &kernel) {
  const unsigned rank = cast<RankedTensorType>(getType()).getRank();
  Value product = multiply(kernel, *this, [&](ElementBuilder &b) {
    AffineExpr n = b.loop(rank - 1), k = b.loop(rank);
    Coordinates lhs, rhs;
    for (unsigned i = 0; i + 1 < rank; ++i)
      lhs.push_back(b.loop(i));
    lhs.push_back(k);
    const bool isTransposed = getOutputDim() == 0;
    rhs.push_back(isTransposed ? n : k);
    rhs.push_back(isTransposed ? k : n);
    return std::pair(lhs, rhs);
  });
  if (!getBias() && getElementTypeOrSelf(product) == getType().getElementType())
    kernel.setTensor(getResult(), product);
  return {product};
}

Value LinearOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Value y = b.load(b.kernel.getIntermediates(*this)[0], at);
  if (getBias())
    y = arith::AddFOp::create(b, y, b.convert(b.read(getBias(), at.back()), y.getType()));
  return b.convert(y, getType().getElementType());
}

bool LinearOp::collapseRows(RowCollapser &rows) {
  return rows.rankOf(getX()) > rows.axes && rows.markFull(getX()) && rows.markWhole(getWeight()) &&
         (!getBias() || rows.markWhole(getBias()));
}

AffineExpr LinearOp::getFlops() { return countFlops(getResult(), depthOf(*this)); }

//===- matmul ---===//

SmallVector<Value> MatmulOp::decompose(KernelBuilder &kernel) {
  const unsigned rank = cast<RankedTensorType>(getType()).getRank();
  auto leadingOf = [&](ElementBuilder &b, Value operand) {
    return leading(b, cast<RankedTensorType>(operand.getType()), rank);
  };
  Value product = multiply(kernel, *this, [&](ElementBuilder &b) {
    AffineExpr n = b.loop(rank - 1), k = b.loop(rank);
    Coordinates lhs = leadingOf(b, getA()), rhs = leadingOf(b, getB());
    lhs.push_back(b.loop(rank - 2));
    lhs.push_back(k);
    rhs.push_back(getTransposeB() ? n : k);
    rhs.push_back(getTransposeB() ? k : n);
    return std::pair(lhs, rhs);
  });
  if (getElementTypeOrSelf(product) == getType().getElementType())
    kernel.setTensor(getResult(), product);
  return {product};
}

Value MatmulOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  return b.convert(b.load(b.kernel.getIntermediates(*this)[0], at), getType().getElementType());
}

bool MatmulOp::collapseRows(RowCollapser &rows) {
  if (rows.rankOf(getB()) == 2)
    return rows.rankOf(getA()) > rows.axes && rows.markFull(getA()) && rows.markWhole(getB());
  return rows.rankOf(getA()) > rows.axes + 1 && rows.rankOf(getA()) == rows.rankOf(getB()) && rows.markFull(getA()) &&
         rows.markFull(getB());
}

AffineExpr MatmulOp::getFlops() { return countFlops(getResult(), depthOf(*this)); }

} // namespace mlir::kiln
