// SPDX-License-Identifier: Apache-2.0
//
// The search space of attention. Of many rows, a block's threads share tiles of keys and values. Of few, as decoding
// has, memory bounds it: each warp takes keys of its own, and blocks share the keys of a row until a GPU is full.
#include "targets/cuda/Attention.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/AttentionKernel.h"

namespace kiln::cuda {

using namespace mlir;

namespace {

constexpr int64_t mostShared = 99 << 10; // bytes of a block's shared memory that each GPU since 8.0 has
constexpr int64_t halfShared = 80 << 10; // with which an 8.0 has two blocks
constexpr int64_t multiprocessors = 108; // of the first GPU of 8.0
constexpr int64_t fewRows = 16;          // that one warp does
constexpr int64_t mostRegisters = 255;   // of a thread
constexpr int64_t leastTilesOfSplit = 2; // or the second launch costs more than it saves
constexpr int64_t mostOutputs = 1 << 30; // that threads of a second launch count
constexpr int64_t leastKeys = 16, mostKeys = 64, mostSplits = 32;

//===- Search space ------------------------------------------------------===//

AttentionShape shapeOf(const Attention &attention, const SchedulePoint &point) {
  return {point.at("queries"),   point.at("keys"),   point.at("queries_per_thread"),
          point.at("key_warps"), point.at("splits"), attention.depth,
          attention.channels};
}

/// Of a thread: scores, outputs, maxima and sums, what is loaded for four steps, and addresses.
int64_t registersOf(const AttentionShape &s) {
  return s.rowsOfThread * (s.keys / 8 + s.paddedChannels() / 8 + 2 + 4) + 4 + 40;
}

std::vector<TuningRule> rulesOf(const Attention &attention) {
  const Attention of = attention; // the rules may outlive the strategy
  auto rule = [of](const char *text, auto holds) {
    return TuningRule{text, [of, holds](const SchedulePoint &point) { return holds(shapeOf(of, point)); }};
  };
  return {
      rule("32 to 512 threads: queries / queries_per_thread * 8 * key_warps",
           [](const AttentionShape &s) {
             return s.teamThreads() % 32 == 0 && s.teamThreads() > 0 && s.threads() <= 512;
           }),
      rule("key_warps = 1 or queries = 4 * queries_per_thread",
           [](const AttentionShape &s) { return s.parts == 1 || s.teamThreads() == 32; }),
      rule("99 KiB of shared memory at most for queries, keys, values and weights",
           [](const AttentionShape &s) { return sharedBytesOf(s) <= mostShared; }),
      rule("255 registers at most: queries_per_thread * (keys / 8 + channels / 8 + 6) + 44",
           [](const AttentionShape &s) { return registersOf(s) <= mostRegisters; }),
  };
}

/// The largest tiles of keys with which two blocks fit, else of queries: each key that is read serves all the tile's
/// queries. Four warps, of 4 x 4 lanes' rows each, hide the latency of shared memory behind one another.
AttentionShape presetOfMany(const Attention &attention, int64_t rows, int64_t batch, int64_t keys) {
  AttentionShape s{128, keys, 8, 1, 1, attention.depth, attention.channels};
  auto halve = [&] { s.rows /= 2, s.rowsOfThread /= 2; };
  while (s.rows > 32 && (s.rows / 2 >= rows || batch * llvm::divideCeil(rows, s.rows) < multiprocessors))
    halve();
  auto fits = [&] { return sharedBytesOf(s) <= halfShared && registersOf(s) <= mostRegisters; };
  while (!fits() && s.rows > 32) {
    for (s.keys = keys; s.keys > leastKeys && !fits();)
      s.keys /= 2;
    if (!fits())
      halve();
  }
  while (!fits() && s.keys > leastKeys)
    s.keys /= 2;
  return s;
}

/// Four warps with as much of keys and values on their way as fits: some 32 KiB a multiprocessor keep the memory of an
/// H200 busy for its latency.
AttentionShape presetOfFew(const Attention &attention, int64_t rows, int64_t keys) {
  const int64_t ofThread = rows <= 4 ? 1 : rows <= 8 ? 2 : 4;
  AttentionShape s{4 * ofThread, keys, ofThread, 4, 1, attention.depth, attention.channels};
  auto fits = [&] { return sharedBytesOf(s) <= halfShared && registersOf(s) <= mostRegisters; };
  while (!fits() && s.keys > leastKeys)
    s.keys /= 2;
  while (!fits() && s.parts > 1)
    s.parts /= 2;
  return s;
}

struct Extents {
  int64_t batch, rows, keys; // at the kernel's bounds

  Extents(const Attention &attention, func::FuncOp kernel)
      : batch(largestValue(extentOf(attention.batch, kernel->getContext()), kernel)),
        rows(largestValue(extentOf(attention.rows, kernel->getContext()), kernel)),
        keys(largestValue(attention.keys, kernel)) {}
};

AttentionShape presetOf(const Attention &attention, const Extents &extents) {
  const int64_t keys = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(extents.keys)), leastKeys, mostKeys);
  AttentionShape s = extents.rows <= fewRows ? presetOfFew(attention, extents.rows, keys)
                                             : presetOfMany(attention, extents.rows, extents.batch, keys);
  const int64_t blocks = extents.batch * llvm::divideCeil(extents.rows, s.rows);
  const int64_t tiles = llvm::divideCeil(extents.keys, s.keys * s.parts);
  // Two blocks a multiprocessor, if there are keys for them.
  while (s.splits < mostSplits && blocks * s.splits < 2 * multiprocessors && tiles >= leastTilesOfSplit * 2 * s.splits)
    s.splits *= 2;
  return s;
}

//===- Strategy ----------------------------------------------------------===//

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
    const Extents extents(attention, first.kernel);
    const AttentionShape preset = presetOf(attention, extents);
    const bool maySplit = double(extents.batch) * double(extents.rows) * double(attention.channels) < mostOutputs;
    SearchSpace space;
    space.push_back({"queries", {4, 8, 16, 32, 64, 128}, preset.rows});
    space.push_back({"queries_per_thread", {1, 2, 4, 8}, preset.rowsOfThread});
    space.push_back({"keys", {16, 32, 64}, preset.keys});
    space.push_back({"key_warps", {1, 2, 4, 8}, preset.parts});
    space.push_back(maySplit ? TuningParameter{"splits", {1, 2, 4, 8, 16, 32}, preset.splits}
                             : TuningParameter{"splits", {1}, 1});
    space.rules = rulesOf(attention);
    return space;
  }

  std::optional<BlockNeeds> needs(const SchedulePoint &point) const override {
    const AttentionShape s = shapeOf(attention, point);
    auto traffic = [&](int64_t across) { // a thread has so many sums of each row
      return 4.0 * double(s.rowsOfThread + across) / double(s.rowsOfThread * across);
    };
    const double ofBoth = (traffic(s.keys / 8) + traffic(s.paddedChannels() / 8)) / 2;
    return BlockNeeds{s.threads(), registersOf(s), sharedBytesOf(s), ofBoth};
  }

  LogicalResult build(tile::Builder &b, const SchedulePoint &point, DevicePlan &plan) const override {
    return buildAttention(b, first, last, attention, shapeOf(attention, point), plan);
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

/// Of queries that are no keys as well: few of those have few keys, too, and any form does.
std::vector<RowVariant> attentionVariants(func::FuncOp kernel, const Placement &placement) {
  std::vector<RowVariant> variants;
  for (auto [number, step] : llvm::enumerate(placement.steps)) {
    std::optional<Attention> attention = findAttention({kernel, placement, step, number});
    if (!attention)
      continue;
    int64_t ofQuery = 1; // rows
    std::optional<unsigned> queries;
    for (const AttentionAxis &axis : attention->rows) {
      auto symbol = dyn_cast<AffineSymbolExpr>(axis.extent);
      if (symbol && !queries && !attention->keys.isFunctionOfSymbol(symbol.getPosition()))
        queries = symbol.getPosition();
      else
        ofQuery *= largestValue(axis.extent, kernel);
    }
    if (!queries)
      break;
    AffineExpr extent = getAffineSymbolExpr(*queries, kernel->getContext());
    for (int64_t bound : {int64_t(1), fewRows / std::max<int64_t>(1, ofQuery)})
      if (leastValue(extent, kernel) <= bound && bound < largestValue(extent, kernel) &&
          (variants.empty() || variants.back().bound < bound))
        variants.push_back({*queries, bound});
    break;
  }
  return variants;
}

} // namespace kiln::cuda
