// SPDX-License-Identifier: Apache-2.0
//
// Elements of tables by index, the indices themselves, and the sinusoidal encoding.
#include "compiler/transforms/KernelBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kiln {

bool isLookup(Operation *op) { return isa<EmbeddingOp, PositionsOp, SinusoidOp, GatherOp, ResizeBilinearOp>(op); }

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

/// Frequencies are in turns: position * (high + low) keeps its fraction to 2^-24 turns however many turns there are,
/// because the product with `high` is exact in two parts (fma) and whole turns are taken off before the parts are
/// added.
static Value evaluateSinusoid(ElementBuilder &b, SinusoidOp op, ArrayRef<Coordinate> at) {
  Type type = op.getType().getElementType();
  auto entry = [&](int64_t row) { return b.read(op.getTable(), {b.getAffineConstantExpr(row), at.back()}); };
  auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, x, y); };
  auto sub = [&](Value x, Value y) -> Value { return arith::SubFOp::create(b, x, y); };
  auto round = [&](Value x) -> Value { return math::FloorOp::create(b, add(x, b.constant(type, 0.5))); };

  Value position = arith::SIToFPOp::create(b, type, b.read(op.getPositions(), at.drop_back()));
  Value high = entry(0), low = entry(1), phase = entry(2);
  Value turns = arith::MulFOp::create(b, position, high);
  Value error = math::FmaOp::create(b, position, high, Value(arith::NegFOp::create(b, turns)));
  Value rest = math::FmaOp::create(b, position, low, error);
  Value fraction = add(add(sub(turns, round(turns)), phase), rest);
  Value reduced = sub(fraction, round(fraction)); // in [-1/2, 1/2]
  return math::SinOp::create(b, Value(arith::MulFOp::create(b, reduced, b.constant(type, 6.28318530717958647692))));
}

Value evaluateLookup(ElementBuilder &b, Operation *op, ArrayRef<Coordinate> at) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](EmbeddingOp embedding) {
        Coordinate row = lookUp(b, embedding.getIndices(), at.drop_back(), embedding.getTable(), 0);
        return b.read(embedding.getTable(), {row, at.back()});
      })
      .Case([&](GatherOp gather) {
        int64_t axis = gather.getAxis(), rank = cast<RankedTensorType>(gather.getIndices().getType()).getRank();
        Coordinates source(at.take_front(axis));
        source.push_back(lookUp(b, gather.getIndices(), at.slice(axis, rank), gather.getTable(), axis));
        source.append(at.begin() + axis + rank, at.end());
        return b.read(gather.getTable(), source);
      })
      .Case([&](PositionsOp positions) {
        return arith::IndexCastOp::create(b, positions.getType().getElementType(), b.toIndex(at[0]));
      })
      .Case([&](ResizeBilinearOp resize) { return evaluateResize(b, resize, at); })
      .Case([&](SinusoidOp sinusoid) { return evaluateSinusoid(b, sinusoid, at); });
}

} // namespace mlir::kiln
