// SPDX-License-Identifier: Apache-2.0
//
// linear and matmul: one reduction over K. The bias is applied where the result is read, so that it is fused into the
// epilogue; so are the rounding of f32 sums to 16-bit floats and the scale of a quantised row. The ops that quantise
// rows are strict: every target produces the same bits.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

namespace {

/// Returns the coordinates of an operand's leading axes, which broadcast to those of the result.
Coordinates leading(ElementBuilder &b, RankedTensorType type, unsigned resultRank) {
  Coordinates result;
  for (int64_t i = 0, end = type.getRank() - 2; i < end; ++i)
    result.push_back(type.getDimSize(i) == 1 ? b.getAffineConstantExpr(0) : b.loop(resultRank - type.getRank() + i));
  return result;
}

/// Maps the loops m, n, k of a GEMM to the coordinates of its operands (`rank` is that of m, n).
using Readers = function_ref<std::pair<Coordinates, Coordinates>(ElementBuilder &)>;

AffineExpr kExtentOf(Operation *op) { return getExtents(cast<RankedTensorType>(op->getOperand(0).getType())).back(); }

Value multiply(KernelBuilder &kernel, KernelOpInterface op, Readers coordinatesOf) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  unsigned rank = type.getRank();
  SmallVector<AffineExpr> loops = getExtents(type); // ..., m, n, k
  loops.push_back(kExtentOf(op));

  kernel.prepareRepeatedReads(op->getOperand(0));
  kernel.prepareRepeatedReads(op->getOperand(1));
  Type accumulator = op.getAccumulatorType();
  auto zero = cast<TypedAttr>(FloatAttr::get(accumulator, 0));
  return kernel.createReduction(loops, rank, zero, [&](ElementBuilder &b, ValueRange sum) {
    auto [lhs, rhs] = coordinatesOf(b);
    Value x = b.read(op->getOperand(0), lhs);
    x = isa<IntegerType>(x.getType()) ? Value(arith::SIToFPOp::create(b, accumulator, x)) : b.convert(x, accumulator);
    Value y = b.convert(b.read(op->getOperand(1), rhs), accumulator);
    return SmallVector<Value>{arith::AddFOp::create(b, sum[0], Value(arith::MulFOp::create(b, x, y)))};
  })[0];
}

template <class ScalarOp> Value strict(ElementBuilder &b, Value x, Value y) {
  auto op = ScalarOp::create(b, x, y);
  op->setAttr(strictAttrName, b.getUnitAttr());
  return op;
}

} // namespace

//===- linear ---===//

Type LinearOp::getAccumulatorType() { return defaultAccumulatorType(getWeight().getType()); }

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
  if (!getBias() && !getScales() && getElementTypeOrSelf(product) == getType().getElementType())
    kernel.setTensor(getResult(), product);
  return {product};
}

Value LinearOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Value y = b.load(b.kernel.getIntermediates(*this)[0], at);
  if (getScales())
    y = strict<arith::MulFOp>(b, y, b.read(getScales(), at.drop_back()));
  if (Value bias = getBias() ? b.convert(b.read(getBias(), at.back()), y.getType()) : Value())
    y = getScales() ? strict<arith::AddFOp>(b, y, bias) : Value(arith::AddFOp::create(b, y, bias));
  return b.convert(y, getType().getElementType());
}

bool LinearOp::collapseRows(RowCollapser &rows) {
  return rows.rankOf(getX()) > rows.axes && rows.markFull(getX()) && rows.markWhole(getWeight()) &&
         (!getBias() || rows.markWhole(getBias())) && (!getScales() || rows.markFull(getScales()));
}

AffineExpr LinearOp::getFlops() { return countFlops(getResult(), kExtentOf(*this)); }

//===- grouped_linear ---===//

/// Stores how many groups follow that of each row, then the products. Targets that call the kernel of a linear for each
/// group do not lower the op in this way.
SmallVector<Value> GroupedLinearOp::decompose(KernelBuilder &kernel) {
  const auto type = cast<RankedTensorType>(getType());
  const Type integer = IntegerType::get(getContext(), 32);
  const int64_t groups = getNumGroups(), each = cast<RankedTensorType>(getWeight().getType()).getDimSize(0) / groups;
  auto number = [&](int64_t value) { return kernel.createConstant(IntegerAttr::get(integer, value)); };
  const AffineExpr rows = getExtents(type).front();
  Value following = kernel.createReduction(
      {rows, getAffineConstantExpr(groups, getContext())}, 1, cast<TypedAttr>(IntegerAttr::get(integer, 0)),
      [&](ElementBuilder &b, ValueRange most) {
        Value row = arith::IndexCastOp::create(b, integer, b.toIndex(b.loop(0)));
        Value group = arith::IndexCastOp::create(b, integer, b.toIndex(b.loop(1)));
        Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, b.read(getEnds(), {b.loop(1)}));
        Value rest = arith::SubIOp::create(b, number(groups - 1), group);
        Value found = arith::SelectOp::create(b, isBefore, rest, number(0));
        return SmallVector<Value>{arith::MaxSIOp::create(b, most[0], found)};
      })[0];
  auto groupOf = [&, following](ElementBuilder &b) -> Value {
    return arith::SubIOp::create(b, number(groups - 1), b.load(following, {b.loop(0)}));
  };
  const bool isOutIn = getWeightOrder() == WeightOrder::OutIn;
  Value product = multiply(kernel, *this, [&](ElementBuilder &b) {
    AffineExpr n = b.loop(1), k = b.loop(2);
    Value first = arith::MulIOp::create(b, groupOf(b), number(each));
    Value row = arith::AddIOp::create(b, Value(arith::IndexCastOp::create(b, b.getIndexType(), first)),
                                      b.toIndex(isOutIn ? n : k));
    return std::pair(Coordinates{b.loop(0), k}, Coordinates{row, isOutIn ? k : n});
  });
  return {product, following};
}

Value GroupedLinearOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  ArrayRef<Value> stored = b.kernel.getIntermediates(*this);
  Value y = b.load(stored[0], at);
  if (getBias()) {
    const Type integer = b.getI32Type();
    const int64_t groups = getNumGroups(), out = cast<RankedTensorType>(getBias().getType()).getDimSize(0) / groups;
    auto number = [&](int64_t value) { return b.kernel.createConstant(IntegerAttr::get(integer, value)); };
    Value group = arith::SubIOp::create(b, number(groups - 1), b.load(stored[1], at.take_front()));
    Value first = arith::IndexCastOp::create(b, b.getIndexType(), Value(arith::MulIOp::create(b, group, number(out))));
    Value index = arith::AddIOp::create(b, first, b.toIndex(at.back()));
    y = arith::AddFOp::create(b, y, b.convert(b.read(getBias(), {index}), y.getType()));
  }
  return b.convert(y, getType().getElementType());
}

bool GroupedLinearOp::collapseRows(RowCollapser &) { return false; }
AffineExpr GroupedLinearOp::getFlops() { return countFlops(getResult(), kExtentOf(*this)); }
/// Any ends are valid: none is an index.
SmallVector<IndexOperand> GroupedLinearOp::getIndexOperands() { return {}; }

//===- quantize_rows ---===//

/// Adding 1.5 * 2^23 rounds the quotient to an integer, since floats of that size are 1 apart. A scale of 0 belongs to
/// rows of zeros, which are divided by 1. With a NaN scale the result is arbitrary, but needs no conversion that would
/// be undefined.
Value QuantizeRowsOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  auto integer = [&](int32_t value) { return b.kernel.createConstant(b.getI32IntegerAttr(value)); };
  Value scale = b.read(getScales(), at.drop_back());
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), scale);
  Value isZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits, integer(0));
  Value divisor = arith::SelectOp::create(b, isZero, b.constant(scale.getType(), 1), scale);
  Value quotient = strict<arith::DivFOp>(b, b.read(getX(), at), divisor);
  Value sum = strict<arith::AddFOp>(b, quotient, b.constant(scale.getType(), 0x1.8p23));
  Value whole = arith::SubIOp::create(b, Value(arith::BitcastOp::create(b, b.getI32Type(), sum)), integer(0x4B400000));
  Value held = arith::MaxSIOp::create(b, Value(arith::MinSIOp::create(b, whole, integer(127))), integer(-127));
  return arith::TruncIOp::create(b, b.getI8Type(), held);
}

bool QuantizeRowsOp::collapseRows(RowCollapser &rows) {
  return rows.rankOf(getX()) > rows.axes && rows.markFull(getX()) && rows.markFull(getScales());
}

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

AffineExpr MatmulOp::getFlops() { return countFlops(getResult(), kExtentOf(*this)); }

} // namespace mlir::kiln
