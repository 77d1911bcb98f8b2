// SPDX-License-Identifier: Apache-2.0
//
// Table look-ups by index, the indices themselves, and the sinusoidal encoding.
#include "compiler/dialect/ReducedAngle.h"
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/dialect/lowering/RowCollapser.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::kiln {

/// Reads the index and clamps it to the axis: the entry-point code checks a model's inputs, but not indices that the
/// model computes.
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

/// Describes an index into an axis of the table.
static IndexOperand indexInto(Value table, int64_t axis, Value indices) {
  return {indices, 0, getExtents(cast<RankedTensorType>(table.getType()))[axis]};
}

/// Creates a comparison of floats that is false for NaN.
static Value createLess(ElementBuilder &b, Value x, double bound) {
  auto less = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, b.constant(x.getType(), bound));
  less->setAttr(strictAttrName, b.getUnitAttr());
  return less;
}

namespace {

/// An f32 position: its whole part, and the turns of its fraction in units of 2^-32 turns.
struct SplitPosition {
  Value isInRange; // whether the whole part is an i32
  Value whole, turn;
};

} // namespace

/// The fraction, below 1, makes up to thousands of turns; these are dropped before they are converted to i32, in units
/// of 2^-31 turns, which half a turn does not exceed.
static SplitPosition splitPosition(ElementBuilder &b, Value position, Value turns) {
  Type number = b.getF32Type(), integer = b.getI32Type();
  auto strict = [&](auto op) -> Value {
    op->setAttr(strictAttrName, b.getUnitAttr());
    return op;
  };
  SplitPosition split;
  split.isInRange = createLess(b, math::AbsFOp::create(b, position), 0x1p31);
  Value bounded = arith::SelectOp::create(b, split.isInRange, position, b.constant(number, 0));
  split.whole = arith::FPToSIOp::create(b, integer, bounded);
  Value fraction = strict(arith::SubFOp::create(b, bounded, Value(arith::SIToFPOp::create(b, number, split.whole))));
  Value made = strict(arith::MulFOp::create(b, fraction, turns));
  Value rest = strict(arith::SubFOp::create(b, made, Value(math::RoundEvenOp::create(b, made))));
  Value halves = arith::FPToSIOp::create(b, integer, Value(arith::MulFOp::create(b, rest, b.constant(number, 0x1p31))));
  split.turn = arith::AddIOp::create(b, halves, halves);
  return split;
}

/// Position times frequency as a fraction of a turn, in units of 2^-32 turns: integer overflow drops whole turns
/// exactly, for any position. The part of the frequency beyond 32 bits is multiplied in floats, rounded to a unit for
/// positions up to 2^24. The highest bits of the fraction select sine or cosine and the sign; the rest, up to an eighth
/// of a turn, is the angle.
Value SinusoidOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Type number = b.getF32Type(), integer = b.getI32Type();
  auto entry = [&](int64_t row) { return b.read(getTable(), {b.getAffineConstantExpr(row), at.back()}); };
  auto constant = [&](int32_t value) { return b.kernel.createConstant(b.getI32IntegerAttr(value)); };
  auto isSet = [&](Value bits, int32_t bit) -> Value {
    Value masked = arith::AndIOp::create(b, bits, constant(bit));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, masked, constant(0));
  };
  auto reduced = [&](auto function) -> Value {
    function->setAttr(reducedAngleAttrName, b.getUnitAttr());
    return arith::BitcastOp::create(b, integer, function);
  };

  Coordinates place(at.drop_back());
  if (hasAxes()) {
    const int64_t count = cast<RankedTensorType>(getPositions().getType()).getDimSize(0);
    Value axis =
        arith::MinSIOp::create(b, entry(hasFloatPositions() ? 4 : 3), constant(static_cast<int32_t>(count - 1)));
    axis = arith::MaxSIOp::create(b, axis, constant(0));
    place.insert(place.begin(), Value(arith::IndexCastOp::create(b, b.getIndexType(), axis)));
  }
  Value position = b.read(getPositions(), place);
  SplitPosition split;
  if (hasFloatPositions()) {
    split = splitPosition(b, position, arith::BitcastOp::create(b, number, entry(3)));
    position = split.whole;
  }
  Value low = arith::MulFOp::create(b, Value(arith::SIToFPOp::create(b, number, position)),
                                    Value(arith::BitcastOp::create(b, number, entry(1))));
  Value turn = arith::AddIOp::create(b, Value(arith::MulIOp::create(b, position, entry(0))),
                                     Value(arith::FPToSIOp::create(b, integer, low)));
  turn = arith::AddIOp::create(b, turn, entry(2));
  if (split.turn)
    turn = arith::AddIOp::create(b, turn, split.turn);

  // Not two shifts, which a code generator may cancel.
  Value nearest = arith::AddIOp::create(b, turn, constant(1 << 29));
  Value rest =
      arith::SubIOp::create(b, Value(arith::AndIOp::create(b, nearest, constant((1 << 30) - 1))), constant(1 << 29));
  Value quarters = arith::SubIOp::create(b, turn, rest);
  Value angle = arith::MulFOp::create(b, Value(arith::SIToFPOp::create(b, number, rest)),
                                      b.constant(number, 2 * llvm::numbers::pi * 0x1p-32));
  Value sine = reduced(math::SinOp::create(b, angle)), cosine = reduced(math::CosOp::create(b, angle));
  Value bits = arith::SelectOp::create(b, isSet(quarters, 1 << 30), cosine, sine);
  Value sign = arith::AndIOp::create(b, quarters, constant(std::numeric_limits<int32_t>::min()));
  Value sinusoid = arith::BitcastOp::create(b, number, Value(arith::XOrIOp::create(b, bits, sign)));
  if (!split.isInRange)
    return sinusoid;
  return arith::SelectOp::create(b, split.isInRange, sinusoid,
                                 b.constant(number, std::numeric_limits<double>::quiet_NaN()));
}

bool SinusoidOp::collapseRows(RowCollapser &) { return false; }

/// A position may be any number.
SmallVector<IndexOperand> SinusoidOp::getIndexOperands() { return {}; }

Value EmbeddingOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate> at) {
  Coordinate row = lookUp(b, getIndices(), at.drop_back(), getTable(), 0);
  return b.read(getTable(), {row, at.back()});
}

bool EmbeddingOp::collapseRows(RowCollapser &rows) { return rows.markFull(getIndices()) && rows.markWhole(getTable()); }
/// The look-up of which this is the gradient checks the indices.
SmallVector<IndexOperand> ScatterAddOp::getIndexOperands() { return {}; }
/// Other indices are ignored.
SmallVector<IndexOperand> IndexAddOp::getIndexOperands() { return {}; }

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

/// Only splat constants are read by kernels; others belong to the entry-point code.
Value ConstantOp::evaluateElement(ElementBuilder &b, ArrayRef<Coordinate>) {
  auto value = cast<DenseElementsAttr>(getValue()).getSplatValue<TypedAttr>();
  if (auto number = dyn_cast<FloatAttr>(value); number && isHalfFloat(number.getType()))
    return b.constant(computedType(number.getType()), number.getValueAsDouble());
  return b.kernel.createConstant(value);
}

bool ConstantOp::collapseRows(RowCollapser &) { return true; }

} // namespace mlir::kiln
