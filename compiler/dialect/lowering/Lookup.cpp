// SPDX-License-Identifier: Apache-2.0
//
// Elements of tables by index, the indices themselves, and the sinusoidal encoding.
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"

namespace mlir::kiln {

/// The index read, clamped to the axis: the host checks a model's inputs, but not indices that the model computes.
static Coordinate lookUp(ElementBuilder &b, Value indices, ArrayRef<Coordinate> at, Value table, int64_t axis) {
  if (indices.getDefiningOp<PositionsOp>())
    return b.toIndex(at[0]);
  Value zero = b.kernel.createConstant(b.getIndexAttr(0)), one = b.kernel.createConstant(b.getIndexAttr(1));
  Value size = b.kernel.createExtent(getExtents(cast<RankedTensorType>(table.getType()))[axis]);
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), b.read(indices, at));
  Value last = isa_and_nonnull<arith::ConstantOp>(size.getDefiningOp())
                   ? b.kernel.createConstant(b.getIndexAttr(*getConstantIntValue(size) - 1))
                   : Value(arith::SubIOp::create(b, size, one));
  return Value(arith::MaxSIOp::create(b, Value(arith::MinSIOp::create(b, index, last)), zero));
}

/// Of an axis of the table.
static IndexOperand indexInto(Value table, int64_t axis, Value indices) {
  return {indices, 0, getExtents(cast<RankedTensorType>(table.getType()))[axis]};
}

/// Position times frequency, in turns, in three parts: two are exact for positions below 2^15 and give up their whole
/// turns, so that what is left after whole quarters of a turn, up to an eighth, is exact to 2^-28 turns. The quarters
/// choose sine or cosine and the sign.
Value SinusoidOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Type type = getType().getElementType();
  auto entry = [&](int64_t row) { return b.read(getTable(), {b.getAffineConstantExpr(row), at.back()}); };
  auto inOrder = [&](auto sum) -> Value {
    sum->setAttr(strictAttrName, b.getUnitAttr());
    return sum;
  };
  auto add = [&](Value x, Value y) { return inOrder(arith::AddFOp::create(b, x, y)); };
  auto sub = [&](Value x, Value y) { return inOrder(arith::SubFOp::create(b, x, y)); };
  auto scaled = [&](Value x, double by) -> Value { return arith::MulFOp::create(b, x, b.constant(type, by)); };
  auto floor = [&](Value x) -> Value { return math::FloorOp::create(b, x); };
  auto round = [&](Value x) { return floor(add(x, b.constant(type, 0.5))); };
  auto differ = [&](Value x, Value y) -> Value { return arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, x, y); };

  Value position = arith::SIToFPOp::create(b, type, b.read(getPositions(), at.drop_back()));
  auto turns = [&](int64_t row) -> Value { return arith::MulFOp::create(b, position, entry(row)); };
  auto fraction = [&](Value x) { return sub(x, round(x)); };
  Value most = add(fraction(turns(0)), fraction(turns(1))), rest = turns(2);
  Value quarters = round(scaled(add(most, rest), 4));
  Value angle = scaled(add(sub(most, scaled(quarters, 0.25)), rest), 6.28318530717958647692);

  Value halves = scaled(add(quarters, scaled(entry(3), 4)), 0.5), pairs = scaled(floor(halves), 0.5);
  Value sine = math::SinOp::create(b, angle), cosine = math::CosOp::create(b, angle);
  Value result = arith::SelectOp::create(b, differ(halves, floor(halves)), cosine, sine);
  return arith::SelectOp::create(b, differ(pairs, floor(pairs)), Value(arith::NegFOp::create(b, result)), result);
}

bool SinusoidOp::collapseRows(RowCollapser &) { return false; }

/// A position may be any number.
SmallVector<IndexOperand> SinusoidOp::getIndexOperands() { return {}; }
SmallVector<IndexOperand> SinusoidalOp::getIndexOperands() { return {}; }

Value EmbeddingOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Coordinate row = lookUp(b, getIndices(), at.drop_back(), getTable(), 0);
  return b.read(getTable(), {row, at.back()});
}

bool EmbeddingOp::collapseRows(RowCollapser &rows) { return rows.markFull(getIndices()) && rows.markWhole(getTable()); }
SmallVector<IndexOperand> EmbeddingOp::getIndexOperands() { return {indexInto(getTable(), 0, getIndices())}; }

Value GatherOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  int64_t axis = getAxis(), rank = cast<RankedTensorType>(getIndices().getType()).getRank();
  Coordinates source(at.take_front(axis));
  source.push_back(lookUp(b, getIndices(), at.slice(axis, rank), getTable(), axis));
  source.append(at.begin() + axis + rank, at.end());
  return b.read(getTable(), source);
}

bool GatherOp::collapseRows(RowCollapser &) { return false; }
SmallVector<IndexOperand> GatherOp::getIndexOperands() { return {indexInto(getTable(), getAxis(), getIndices())}; }

Value PositionsOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  return arith::IndexCastOp::create(b, getType().getElementType(), b.toIndex(at[0]));
}

bool PositionsOp::collapseRows(RowCollapser &) { return false; }

/// One value for all elements: others are the host's.
Value ConstantOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate>) {
  auto value = cast<DenseElementsAttr>(getValue()).getSplatValue<TypedAttr>();
  if (auto number = dyn_cast<FloatAttr>(value); number && isShortFloat(number.getType()))
    return b.constant(computedType(number.getType()), number.getValueAsDouble());
  return b.kernel.createConstant(value);
}

bool ConstantOp::collapseRows(RowCollapser &) { return true; }

} // namespace mlir::kiln
