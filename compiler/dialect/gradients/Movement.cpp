// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of ops that move elements or read them by index: gradients accumulate at the source of each element.
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace mlir::kiln {

KILN_GRADIENT(ReshapeOp) { return {b.reshape(gradients[0], getExtents(rankedType(getX())))}; }
KILN_GRADIENT(ExpandOp) { return {b.sumTo(gradients[0], rankedType(getX()))}; }
KILN_GRADIENT(TransposeOp) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    inverse[axis] = static_cast<int64_t>(i);
  return {b.transpose(gradients[0], inverse)};
}

/// Returns the first or the last `extent` elements of x along an axis.
static Value takePart(GradientBuilder &b, Value x, int64_t axis, AffineExpr extent, bool isAtEnd) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  if (extents[axis] == extent)
    return x;
  extents[axis] = extent;
  return b.createAs<SliceOp>(b.typeOf(extents, x), x, axis, 0, isAtEnd);
}

KILN_GRADIENT(ConcatOp) {
  const auto axis = static_cast<int64_t>(getAxis());
  SmallVector<Value> parts;
  AffineExpr end = getAffineConstantExpr(0, getContext());
  for (Value input : getInputs()) {
    const AffineExpr extent = getExtents(rankedType(input))[axis];
    end = canonicalExtent(end + extent);
    parts.push_back(takePart(b, takePart(b, gradients[0], axis, end, false), axis, extent, true));
  }
  return parts;
}

/// Pads x with zeros before or after it to the extent `whole`. No tensor may be empty: where the number of zeros is
/// dynamic, more are added first and then cut off.
static Value addZeros(GradientBuilder &b, Value x, int64_t axis, AffineExpr whole, bool isBefore) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  const AffineExpr missing = canonicalExtent(whole - extents[axis]);
  if (isConstant(missing, 0))
    return x;
  extents[axis] = isa<AffineConstantExpr>(missing) ? missing : whole;
  Value zeros = b.zeros(b.typeOf(extents, x));
  Value both = b.create<ConcatOp>(isBefore ? SmallVector<Value>{zeros, x} : SmallVector<Value>{x, zeros}, axis);
  return takePart(b, both, axis, whole, isBefore);
}

KILN_GRADIENT(SliceOp) {
  const auto axis = static_cast<int64_t>(getAxis());
  const AffineExpr whole = getExtents(rankedType(getX()))[axis];
  if (getAtEnd())
    return {addZeros(b, gradients[0], axis, whole, true)};
  const AffineExpr after = canonicalExtent(whole - static_cast<int64_t>(getStart()));
  return {addZeros(b, addZeros(b, gradients[0], axis, after, false), axis, whole, true)};
}

/// Returns the frequencies of the pairs as a constant: [pairs], or [axes, 1, pairs] with zeros for other axes' pairs.
static Value createFrequencies(GradientBuilder &b, SinusoidalOp op) {
  SmallVector<float> values;
  for (double frequency : op.getPairFrequencies())
    values.push_back(static_cast<float>(frequency));
  const auto pairs = static_cast<int64_t>(values.size());
  SmallVector<int64_t> shape{pairs};
  if (const ArrayRef<int32_t> axes = op.getAxes(); !axes.empty()) {
    shape = {rankedType(op.getPositions()).getDimSize(0), 1, pairs};
    SmallVector<float> ofAxes(shape[0] * pairs, 0);
    for (auto [pair, axis] : llvm::enumerate(axes))
      ofAxes[axis * pairs + static_cast<int64_t>(pair)] = values[pair];
    values = ofAxes;
  }
  auto type = RankedTensorType::get(shape, Float32Type::get(op.getContext()));
  return b.create<ConstantOp>(DenseElementsAttr::get(type, ArrayRef<float>(values)));
}

/// The derivative of sin by the position is the frequency times cos, which is the next column, and minus the reverse
/// for cos. Each position gets the sum over its pairs.
KILN_GRADIENT(SinusoidalOp) {
  if (!isa<FloatType>(rankedType(getPositions()).getElementType()))
    return {Value()};
  const AffineExpr pairs = getAffineConstantExpr(getType().getShape().back() / 2, getContext()),
                   one = getAffineConstantExpr(1, getContext()), two = getAffineConstantExpr(2, getContext());
  auto column = [&](Value x, int64_t which) {
    x = b.asMatrix(x);
    const AffineExpr rows = getExtents(rankedType(x)).front();
    Value part =
        b.createAs<SliceOp>(b.typeOf({rows, pairs, one}, x), b.reshape(x, {rows, pairs, two}), 2, which, false);
    return b.reshape(part, {rows, pairs});
  };
  Value dy = gradients[0], y = getResult();
  Value slopes = b.sub(b.mul(column(dy, 0), column(y, 1)), b.mul(column(dy, 1), column(y, 0)));
  Value scaled = b.mul(slopes, createFrequencies(b, *this));
  Value sums = b.create<SumOp>(scaled, rankedType(scaled).getRank() - 1);
  return {b.reshape(sums, getExtents(rankedType(getPositions())))};
}

KILN_GRADIENT(EmbeddingOp) {
  return {{}, b.scatterAdd(getIndices(), b.asMatrix(gradients[0]), getExtents(rankedType(getTable())).front())};
}

KILN_GRADIENT(ArgsortOp) { return {Value()}; }

/// Each row gets the gradient of the row that it was added to, if there is one. The look-up reads row 0 for the others,
/// whose indices a caller may give: no check of inputs applies to a computed index.
KILN_GRADIENT(IndexAddOp) {
  RankedTensorType type = rankedType(getX());
  if (!isa<FloatType>(type.getElementType()))
    return {Value(), Value(), Value()};
  const AffineExpr one = b.extent(1), rows = getExtents(rankedType(getIndices())).front();
  Value positions = b.create<PositionsOp>(getX(), 0);
  Value last = b.createAs<SliceOp>(b.typeOf(one, positions), positions, 0, 0, /*at_end=*/true);
  Value isWithin = b.create<LogicalAndOp>(b.create<LessEqualOp>(b.integer(0), getIndices()),
                                          b.create<LessEqualOp>(getIndices(), last));
  Value taken = b.create<EmbeddingOp>(b.where(isWithin, getIndices(), b.integer(0)), gradients[0]);
  Value ofRows = b.where(b.reshape(isWithin, {rows, one}), taken, b.number(gradients[0], 0));
  return {gradients[0], Value(), ofRows};
}

/// The gradient of a gather by rank number: each rank read one slice of a value that all ranks have, so all ranks'
/// slices are gathered.
static Value gatherRanks(GradientBuilder &b, Value own, int64_t axis, RankedTensorType table, Group over) {
  SmallVector<AffineExpr> extents = getExtents(table);
  std::rotate(extents.begin(), extents.begin() + axis, extents.begin() + axis + 1);
  SmallVector<int64_t> back = llvm::to_vector(llvm::seq<int64_t>(1, table.getRank()));
  back.insert(back.begin() + axis, 0);
  return b.transpose(b.createAs<AllGatherOp>(b.typeOf(extents, own), own, over), back);
}

/// The axis of the indices is moved to the front for scatterAdd, and back afterwards.
KILN_GRADIENT(GatherOp) {
  RankedTensorType table = rankedType(getTable());
  if (!isa<FloatType>(table.getElementType()))
    return {Value(), Value()};
  const auto axis = static_cast<int64_t>(getAxis()), rank = rankedType(getIndices()).getRank();
  if (auto own = getIndices().getDefiningOp<RankOp>())
    return {gatherRanks(b, gradients[0], axis, table, own.getOver()), Value()};
  SmallVector<int64_t> front, back;
  llvm::append_range(front, llvm::seq<int64_t>(axis, axis + rank));
  llvm::append_range(front, llvm::seq<int64_t>(0, axis));
  llvm::append_range(front, llvm::seq<int64_t>(axis + rank, rankedType(gradients[0]).getRank()));
  SmallVector<AffineExpr> extents = getExtents(table), others(extents);
  others.erase(others.begin() + axis);
  Value rows =
      b.reshape(b.transpose(gradients[0], front),
                {getProduct(getExtents(rankedType(getIndices())), getContext()), getProduct(others, getContext())});
  Value sums = b.scatterAdd(getIndices(), rows, extents[axis]);
  others.insert(others.begin(), extents[axis]);
  llvm::append_range(back, llvm::seq<int64_t>(1, axis + 1));
  back.push_back(0);
  llvm::append_range(back, llvm::seq<int64_t>(axis + 1, table.getRank()));
  return {b.transpose(b.reshape(sums, others), back), Value()};
}

} // namespace mlir::kiln
