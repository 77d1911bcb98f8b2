// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/gradients/RankParts.h"

namespace mlir::kiln {

std::optional<RankParts> RankParts::of(ModuleOp module) {
  auto all = module->getAttrOfType<IntegerAttr>(reductionPartsAttrName);
  const int64_t ranks = getNumRanks(module);
  return all ? std::optional(RankParts{ranks, all.getInt() / ranks}) : std::nullopt;
}

static Value slice(GradientBuilder &b, Value x, int64_t axis, int64_t first, int64_t count) {
  SmallVector<AffineExpr> extents = getExtents(rankedType(x));
  extents[axis] = constantExtent(x, count);
  RankedTensorType type = b.typeOf(extents, x);
  return type == x.getType() ? x : b.createAs<SliceOp>(type, x, axis, first, /*at_end=*/false);
}

SmallVector<Value> RankParts::divide(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const {
  SmallVector<Value> sections;
  int64_t first = 0;
  for (int64_t section : shard.getSections()) {
    const int64_t share = section / ranks;
    Value here = slice(b, x, axis, first, share);
    SmallVector<AffineExpr> extents = getExtents(rankedType(here));
    extents[axis] = constantExtent(x, share / own);
    extents.insert(extents.begin() + axis, constantExtent(x, own));
    sections.push_back(b.reshape(here, extents));
    first += share;
  }
  return sections;
}

SmallVector<Value> unstack(GradientBuilder &b, Value stacked) {
  const SmallVector<AffineExpr> extents = getExtents(rankedType(stacked));
  SmallVector<Value> terms;
  for (int64_t i = 0; i < rankedType(stacked).getDimSize(0); ++i)
    terms.push_back(b.reshape(slice(b, stacked, 0, i, 1), ArrayRef(extents).drop_front()));
  return terms;
}

/// Adds adjacent terms pairwise until one is left.
static Value addTree(GradientBuilder &b, SmallVector<Value> terms) {
  for (; terms.size() > 1; terms.truncate(terms.size() / 2))
    for (size_t i = 0; i < terms.size() / 2; ++i)
      terms[i] = b.add(terms[2 * i], terms[2 * i + 1]);
  return terms.front();
}

Value addAsTree(GradientBuilder &b, Value stacked) { return addTree(b, unstack(b, stacked)); }

Value RankParts::add(GradientBuilder &b, SmallVector<Value> parts) const {
  Value sum = addTree(b, std::move(parts));
  if (ranks == 1)
    return sum;
  SmallVector<AffineExpr> extents = getExtents(rankedType(sum));
  extents.insert(extents.begin(), constantExtent(sum, ranks));
  return addAsTree(b, b.createAs<AllGatherOp>(b.typeOf(extents, sum), sum));
}

/// Each sum of squares is a separate reduction along one axis, so that the kernel is the same for all numbers of ranks.
SmallVector<Value> RankParts::squares(GradientBuilder &b, Value x, int64_t axis, ShardAttr shard) const {
  SmallVector<Value> sums(own);
  int64_t first = 0;
  for (int64_t section : shard.getSections()) {
    const int64_t share = section / ranks, part = share / own;
    for (int64_t i = 0; i < own; ++i) {
      Value here = slice(b, x, axis, first + i * part, part);
      Value elements = b.reshape(here, getProduct(getExtents(rankedType(here)), x.getContext()));
      Value sum = b.create<SumOp>(b.mul(elements, elements), 0);
      sums[i] = sums[i] ? b.add(sums[i], sum) : sum;
    }
    first += share;
  }
  return sums;
}

} // namespace mlir::kiln
