// SPDX-License-Identifier: Apache-2.0
#include "compiler/parallel/ShardParts.h"

namespace mlir::kiln {

/// Selects the rank's parts: [..., all parts, ...] -> [..., own parts, ...]
static Value takeOwn(GradientBuilder &b, Value x, unsigned axis, const RankParts &parts) {
  if (parts.ranks == 1)
    return x;
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  extents[axis] = constantExtent(x, parts.own);
  extents.insert(extents.begin() + axis, constantExtent(x, parts.ranks));
  Value rank = b.createAs<RankOp>(RankedTensorType::get({}, IntegerType::get(x.getContext(), 32)), Group::Ranks);
  return b.create<GatherOp>(b.reshape(x, extents), rank, axis);
}

/// [..., heads times width] -> [..., own parts times width]: selects for each part the head that its queries read.
static Value takeHeads(GradientBuilder &b, Value keys, int64_t heads, const RankParts &parts) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(keys)), all;
  const AffineExpr width = extents.pop_back_val().floorDiv(heads);
  const int64_t axis = extents.size(), count = parts.ranks * parts.own;
  llvm::append_range(extents, ArrayRef{constantExtent(keys, heads), constantExtent(keys, 1), width});
  Value heads1 = b.reshape(keys, extents);
  extents[axis + 1] = constantExtent(keys, count / heads);
  Value copies = b.expandTo(heads1, b.typeOf(extents, keys));
  extents[axis] = constantExtent(keys, count);
  extents.erase(extents.begin() + axis + 1);
  Value own = takeOwn(b, b.reshape(copies, extents), axis, parts);
  extents.pop_back();
  extents.back() = width * parts.own;
  return b.reshape(own, extents);
}

void shareKeys(AttentionOp attention, const RankParts &parts) {
  OpBuilder builder(attention);
  GradientBuilder b(builder, attention.getLoc());
  const int64_t heads = attention.getNumKeyValueHeads();
  for (OpOperand *all : {&attention.getKeyMutable(), &attention.getValueMutable()})
    all->set(takeHeads(b, all->get(), heads, parts));
  attention.setKeyValueHeads(parts.own);
}

/// Selects a weight [width] for each own part: [own parts, 1, width].
static Value takeWeights(GradientBuilder &b, Value weight, const RankParts &parts) {
  const AffineExpr width = getExtents(rankedType(weight)).back();
  Value copies = b.expandTo(weight, b.typeOf({constantExtent(weight, parts.ranks * parts.own), width}, weight));
  return b.reshape(takeOwn(b, copies, 0, parts), {constantExtent(weight, parts.own), constantExtent(weight, 1), width});
}

/// Replaces the norm by one without a weight; its rows of each part, [own parts, rows, width], are multiplied by the
/// part's weight.
void shareNorm(Operation *norm, unsigned axis, const RankParts &parts) {
  OpBuilder builder(norm);
  GradientBuilder b(builder, norm->getLoc());
  Value weight = norm->getOperand(1), bias = isa<LayerNormOp>(norm) ? norm->getOperand(2) : Value();
  auto splat = [&](double value) {
    RankedTensorType type = rankedType(weight);
    return b.create<ConstantOp>(
        DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(type.getElementType(), value))));
  };
  norm->setOperand(1, splat(1));
  if (bias)
    norm->setOperand(2, splat(0));
  builder.setInsertionPointAfter(norm);
  Value rows = norm->getResult(0);
  const SmallVector<AffineExpr> extents = getExtents(rankedType(rows));
  SmallVector<AffineExpr> divided = extents;
  divided[axis] = constantExtent(rows, rankedType(rows).getDimSize(axis) / parts.own);
  divided.insert(divided.begin() + axis, constantExtent(rows, parts.own));
  SmallVector<int64_t> toFront = llvm::to_vector(llvm::seq<int64_t>(divided.size())), back = toFront;
  std::rotate(toFront.begin(), toFront.begin() + axis, toFront.begin() + axis + 1);
  std::rotate(back.begin(), back.begin() + 1, back.begin() + axis + 1);
  Value first = b.reshape(rows, divided), moved = b.transpose(first, toFront);
  const SmallVector<AffineExpr> apart = getExtents(rankedType(moved));
  const AffineExpr count = getProduct(ArrayRef(apart).drop_front().drop_back(), rows.getContext());
  Value y = b.mul(b.reshape(moved, {apart.front(), count, apart.back()}), takeWeights(b, weight, parts));
  if (bias)
    y = b.add(y, takeWeights(b, bias, parts));
  Value result = b.reshape(b.transpose(b.reshape(y, apart), back), extents);
  rows.replaceAllUsesExcept(result, first.getDefiningOp());
}

} // namespace mlir::kiln
