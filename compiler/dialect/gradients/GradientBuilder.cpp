// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace mlir::kiln {

Value GradientBuilder::number(Value like, double value) {
  auto type = RankedTensorType::get({}, rankedType(like).getElementType());
  return create<ConstantOp>(DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value)));
}

Value GradientBuilder::zeros(RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = create<ConstantOp>(cast<ElementsAttr>(builder.getZeroAttr(scalar)));
  return expandTo(zero, type);
}

Value GradientBuilder::integer(int32_t value) {
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return create<ConstantOp>(DenseElementsAttr::get(scalar, builder.getI32IntegerAttr(value)));
}

RankedTensorType GradientBuilder::typeOf(ArrayRef<AffineExpr> extents, Value like) {
  return getTensorType(extents, rankedType(like).getElementType(), getNumSymbols(like.getType()));
}

Value GradientBuilder::reshape(Value x, ArrayRef<AffineExpr> extents) {
  RankedTensorType type = typeOf(extents, x);
  return type == x.getType() ? x : createAs<ReshapeOp>(type, x);
}

Value GradientBuilder::transposeMatrix(Value x) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(rankedType(x).getRank()));
  std::swap(permutation.end()[-1], permutation.end()[-2]);
  return transpose(x, permutation);
}

Value GradientBuilder::asMatrix(Value x) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  return reshape(x, {getProduct(ArrayRef(extents).drop_back(), builder.getContext()), extents.back()});
}

Value GradientBuilder::keepAxis(Value reduced, Value x, int64_t axis) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  extents[axis] = builder.getAffineConstantExpr(1);
  return reshape(reduced, extents);
}

/// Adjacent axes that are summed become one reduction.
Value GradientBuilder::sumTo(Value x, RankedTensorType type) {
  if (x.getType() == type)
    return x;
  const SmallVector<AffineExpr> wanted = getExtents(type);
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  const int64_t added = static_cast<int64_t>(extents.size() - wanted.size());
  auto isSummed = [&](int64_t axis) { return axis < added || wanted[axis - added] != getExtents(rankedType(x))[axis]; };
  SmallVector<AffineExpr> joined;
  SmallVector<bool> summed;
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    const bool isOne = isConstant(extent, 1);
    if (isOne)
      continue;
    if (!joined.empty() && summed.back() && isSummed(static_cast<int64_t>(axis)))
      joined.back() = getProduct({joined.back(), extent}, builder.getContext());
    else
      joined.push_back(extent), summed.push_back(isSummed(static_cast<int64_t>(axis)));
  }
  x = reshape(x, joined);
  for (int64_t axis = static_cast<int64_t>(joined.size()); axis-- > 0;)
    if (summed[axis])
      x = create<SumOp>(x, axis);
  return reshape(x, wanted);
}

Value GradientBuilder::scatterAdd(Value indices, Value rows, AffineExpr height) {
  const AffineExpr count = getProduct(getExtents(rankedType(indices)), builder.getContext());
  const AffineExpr extents[] = {height, getExtents(rankedType(rows)).back()};
  RankedTensorType type = typeOf(extents, rows);
  Type element = type.getElementType(), sums = builder.getF32Type();
  if (element != sums)
    rows = createAs<CastOp>(rankedType(rows).clone(sums), rows);
  Value sum = createAs<ScatterAddOp>(type.clone(sums), reshape(indices, count), rows);
  return element == sums ? sum : createAs<CastOp>(type, sum);
}

Value GradientBuilder::expandTo(Value x, RankedTensorType type) {
  return x.getType() == type ? x : createAs<ExpandOp>(type, x);
}

Value GradientBuilder::reciprocalExtent(Value x, int64_t axis) {
  const AffineExpr extent = getExtents(rankedType(x))[axis];
  if (auto constant = dyn_cast<AffineConstantExpr>(extent))
    return number(x, 1.0 / static_cast<double>(constant.getValue()));
  // The extent is dynamic: the mean of 1, 0, 0, ... is its reciprocal.
  Value positions = create<PositionsOp>(x, axis);
  Value first = createAs<CastOp>(typeOf(extent, x), create<EqualOp>(positions, integer(0)));
  return create<MeanOp>(first, 0);
}

Value GradientBuilder::exchange(Value x, Way way) {
  SendOp::create(builder, loc, x, way);
  return ReceiveOp::create(builder, loc, x.getType(), way).getResult(0);
}

} // namespace mlir::kiln
