// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Attention.h"

#include "targets/cuda/attention/Kernel.h"
#include "targets/cuda/attention/SearchSpace.h"
#include "targets/cuda/attention/WgmmaKernel.h"

namespace kiln::cuda {

using namespace mlir;

namespace {

class AttentionStrategy : public StageStrategy {
public:
  AttentionStrategy(const StageContext &context, Attention found)
      : first(context),
        last{context.kernel, context.placement, context.placement.stages[context.number + found.numStages - 1],
             context.number + found.numStages - 1},
        attention(std::move(found)) {}

  StringRef name() const override { return "attention"; }
  size_t numStages() const override { return attention.numStages; }
  ArrayRef<Value> unstored() const override { return attention.unstored; }

  SearchSpace searchSpace() const override {
    SearchSpace space = attentionSpace(attention, first.kernel), tma = attentionWgmmaSpace(first, attention);
    llvm::append_range(space, tma);
    llvm::append_range(space.rules, tma.rules);
    return space;
  }

  std::optional<BlockNeeds> needs(const ScheduleConfig &config) const override {
    return needsOf(attentionShapeOf(attention, config));
  }

  LogicalResult build(tile::Builder &b, const ScheduleConfig &config, LaunchPlan &plan) const override {
    return buildAttention(b, first, last, attention, attentionShapeOf(attention, config), plan);
  }

  std::optional<BlockNeeds> tmaNeeds(const ScheduleConfig &config) const override {
    return findAttentionMaps(first, attention) ? std::optional(needsOf(attentionWgmmaShapeOf(attention, config)))
                                               : std::nullopt;
  }
  /// Returns the parameters of the variant that is not launched. Keys and values have tensor maps wherever they begin
  /// at multiples of 16 bytes.
  SmallVector<std::string> idleParameters(int64_t capability) const override {
    SmallVector<std::string> keys;
    const SearchSpace tma = attentionWgmmaSpace(first, attention);
    for (const TuningParameter &parameter :
         capability == 90 && !tma.empty() ? attentionSpace(attention, first.kernel) : tma)
      keys.push_back(parameter.key);
    return keys;
  }

  LogicalResult buildTma(tile::Builder &b, size_t number, const ScheduleConfig &config,
                         LaunchPlan &plan) const override {
    return buildAttentionWgmma(b, first, last, attention, number, config, plan);
  }

private:
  StageContext first, last;
  Attention attention;
};

} // namespace

std::unique_ptr<StageStrategy> matchAttention(const StageContext &context) {
  std::optional<Attention> attention = findAttention(context);
  return attention ? std::make_unique<AttentionStrategy>(context, std::move(*attention)) : nullptr;
}

/// Returns the variants for as many queries as keys, in f32. Those for one sequence have smaller tiles, since there
/// are few blocks. If others are rounded to tf32, the variant for so few queries that memory bounds them stays f32.
/// `rows`: rows per query.
static std::vector<ShapeVariant> variantsOfBoth(func::FuncOp kernel, const Attention &attention, unsigned queries,
                                                int64_t rows) {
  ShapeVariant variant{queries, 0};
  for (const AttentionAxis &axis : attention.batch)
    if (auto symbol = dyn_cast<AffineSymbolExpr>(axis.extent); symbol && symbol.getPosition() != queries)
      variant.ofOne.push_back(symbol.getPosition());
  std::vector<ShapeVariant> variants;
  AffineExpr extent = getAffineSymbolExpr(queries, kernel->getContext());
  const int64_t most = largestValue(extent, kernel), few = mostSkinnyRows / std::max<int64_t>(1, rows);
  if (attention.mma && leastValue(extent, kernel) <= few && few < most)
    variants.push_back({queries, few});
  for (int64_t bound : {128, 512})
    if (most > 128 && (bound < most || (bound == most && !variant.ofOne.empty()))) {
      variant.bound = bound;
      variants.push_back(variant);
    }
  return variants;
}

/// Queries that are not also the keys get variants for one query and for few. Queries that are also the keys get
/// variants for one short sequence instead, since few of them have few keys, too.
std::vector<ShapeVariant> attentionVariants(func::FuncOp kernel, const Placement &placement) {
  std::vector<ShapeVariant> variants;
  for (auto [number, stage] : llvm::enumerate(placement.stages)) {
    std::optional<Attention> attention = findAttention({kernel, placement, stage, number});
    if (!attention)
      continue;
    int64_t ofQuery = 1; // rows per query
    std::optional<unsigned> queries, both;
    for (const AttentionAxis &axis : attention->rows) {
      auto symbol = dyn_cast<AffineSymbolExpr>(axis.extent);
      if (symbol && !queries && !attention->keys.isFunctionOfSymbol(symbol.getPosition())) {
        queries = symbol.getPosition();
        continue;
      }
      ofQuery *= largestValue(axis.extent, kernel);
      if (symbol && !both)
        both = symbol.getPosition();
    }
    if (!queries && (!both || (attention->mma && attention->mma->isHalf())))
      return variants;
    AffineExpr extent = getAffineSymbolExpr(queries ? *queries : *both, kernel->getContext());
    if (!queries)
      return variantsOfBoth(kernel, *attention, *both, ofQuery / std::max<int64_t>(1, largestValue(extent, kernel)));
    for (int64_t bound : {int64_t(1), mostSkinnyRows / std::max<int64_t>(1, ofQuery)})
      if (leastValue(extent, kernel) <= bound && bound < largestValue(extent, kernel) &&
          (variants.empty() || variants.back().bound < bound))
        variants.push_back({*queries, bound});
    break;
  }
  return variants;
}

} // namespace kiln::cuda
