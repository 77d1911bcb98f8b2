// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/attention/Attention.h"

#include "targets/cuda/attention/Kernel.h"
#include "targets/cuda/attention/SearchSpace.h"
#include "targets/cuda/attention/WgmmaKernel.h"

namespace kiln::cuda {

using namespace mlir;

namespace {

class AttentionStrategy : public StepStrategy {
public:
  AttentionStrategy(const StepContext &context, Attention found)
      : first(context),
        last{context.kernel, context.placement, context.placement.steps[context.number + found.numSteps - 1],
             context.number + found.numSteps - 1},
        attention(std::move(found)) {}

  StringRef name() const override { return "attention"; }
  size_t numSteps() const override { return attention.numSteps; }
  ArrayRef<Value> unstored() const override { return attention.unstored; }

  SearchSpace searchSpace() const override {
    SearchSpace space = attentionSpace(attention, first.kernel), mapped = attentionWgmmaSpace(first, attention);
    llvm::append_range(space, mapped);
    llvm::append_range(space.rules, mapped.rules);
    return space;
  }

  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    return needsOf(attentionShapeOf(attention, point));
  }

  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override {
    return buildAttention(b, first, last, attention, attentionShapeOf(attention, point), plan);
  }

  std::optional<BlockNeeds> mappedNeeds(const SchedulePoint &point) const override {
    return findAttentionMaps(first, attention) ? std::optional(needsOf(attentionWgmmaShapeOf(attention, point)))
                                               : std::nullopt;
  }
  /// Returns the parameters of the variant that is not launched. Keys and values have tensor maps wherever they begin
  /// at multiples of 16 bytes.
  SmallVector<std::string> idleParameters(int64_t capability) const override {
    SmallVector<std::string> keys;
    const SearchSpace mapped = attentionWgmmaSpace(first, attention);
    for (const TuningParameter &parameter :
         capability == 90 && !mapped.empty() ? attentionSpace(attention, first.kernel) : mapped)
      keys.push_back(parameter.key);
    return keys;
  }

  LogicalResult buildMapped(tile::Builder &b, size_t number, const SchedulePoint &point,
                            DevicePlan &plan) const override {
    return buildAttentionWgmma(b, first, last, attention, number, point, plan);
  }

private:
  StepContext first, last;
  Attention attention;
};

} // namespace

std::unique_ptr<StepStrategy> matchAttention(const StepContext &context) {
  std::optional<Attention> attention = findAttention(context);
  return attention ? std::make_unique<AttentionStrategy>(context, std::move(*attention)) : nullptr;
}

/// Returns the variants for as many queries as keys, in f32. Those for one sequence have smaller tiles, since there
/// are few blocks. If others are rounded to tf32, the variant for so few queries that memory bounds them stays f32.
/// `rows`: rows per query.
static std::vector<RowVariant> variantsOfBoth(func::FuncOp kernel, const Attention &attention, unsigned queries,
                                              int64_t rows) {
  RowVariant variant{queries, 0};
  for (const AttentionAxis &axis : attention.batch)
    if (auto symbol = dyn_cast<AffineSymbolExpr>(axis.extent); symbol && symbol.getPosition() != queries)
      variant.ofOne.push_back(symbol.getPosition());
  std::vector<RowVariant> variants;
  AffineExpr extent = getAffineSymbolExpr(queries, kernel->getContext());
  const int64_t most = largestValue(extent, kernel), few = fewRows / std::max<int64_t>(1, rows);
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
std::vector<RowVariant> attentionVariants(func::FuncOp kernel, const Placement &placement) {
  std::vector<RowVariant> variants;
  for (auto [number, step] : llvm::enumerate(placement.steps)) {
    std::optional<Attention> attention = findAttention({kernel, placement, step, number});
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
    if (!queries && (!both || (attention->mma && attention->mma->isShort())))
      return variants;
    AffineExpr extent = getAffineSymbolExpr(queries ? *queries : *both, kernel->getContext());
    if (!queries)
      return variantsOfBoth(kernel, *attention, *both, ofQuery / std::max<int64_t>(1, largestValue(extent, kernel)));
    for (int64_t bound : {int64_t(1), fewRows / std::max<int64_t>(1, ofQuery)})
      if (leastValue(extent, kernel) <= bound && bound < largestValue(extent, kernel) &&
          (variants.empty() || variants.back().bound < bound))
        variants.push_back({*queries, bound});
    break;
  }
  return variants;
}

} // namespace kiln::cuda
