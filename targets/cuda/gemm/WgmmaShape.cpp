// SPDX-License-Identifier: Apache-2.0
//
// Default configurations are computed, not measured; docs/cuda.md shows how.
#include "targets/cuda/gemm/WgmmaShape.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/gemm/TileShape.h"
#include <cmath>

namespace kiln::cuda {

using namespace mlir;

static constexpr int64_t mostShared = 227 << 10; // per block, in bytes
static constexpr int64_t mostRegisters = 232;    // per consumer thread
static constexpr int64_t leastRows = 64;         // for the kernel's largest number of rows, unless the weight is large

bool hasWgmma(const StageContext &context, const Contraction &contraction) {
  return (largestExtent(contraction, contraction.rows) >= leastRows || isLarge(contraction)) &&
         findWgmmaProduct(context, contraction);
}

WgmmaShape wgmmaShapeOf(const ScheduleConfig &config) {
  return {config.at("wgmma_bm"),     config.at("wgmma_bn"),      config.at("wgmma_groups"), config.at("wgmma_stages"),
          config.at("wgmma_raster"), config.at("wgmma_cluster"), config.at("wgmma_split")};
}

/// Estimates the registers of a consumer thread: its accumulators, addresses, and those of the epilogue.
static int64_t registers(const WgmmaShape &shape) { return shape.sumsOfThread() + 64; }

/// Two consumer warpgroups get registers of the producer warps; all threads start with the same number.
BlockNeeds needsOf(const WgmmaShape &shape) {
  BlockNeeds needs;
  needs.threads = shape.threads();
  needs.registers = shape.groups > 1 ? 65536 / shape.threads() / 8 * 8 : registers(shape);
  needs.sharedBytes = shape.sharedBytes();
  return needs;
}

static bool hasRoomForSums(const WgmmaShape &shape) {
  return shape.split == 1 || shape.stagingAt() >= 4 * shape.bm * shape.bn;
}

static std::vector<TuningRule> rules() {
  return {
      {"64 rows of wgmma_bm at least for each of wgmma_groups",
       [](const ScheduleConfig &p) { return wgmmaShapeOf(p).blocksOfGroup() > 0; }},
      {"232 registers at most: wgmma_bm * wgmma_bn / (128 * wgmma_groups) + 64",
       [](const ScheduleConfig &p) { return registers(wgmmaShapeOf(p)) <= mostRegisters; }},
      {"227 KiB of shared memory at most for wgmma_stages of (wgmma_bm + wgmma_bn) * 128 + 16 bytes and 10 KiB of each "
       "of wgmma_groups",
       [](const ScheduleConfig &p) { return wgmmaShapeOf(p).sharedBytes() <= mostShared; }},
      {"wgmma_cluster or wgmma_split of 1",
       [](const ScheduleConfig &p) { return p.at("wgmma_cluster") == 1 || p.at("wgmma_split") == 1; }},
      {"stages that have room for f32 sums of wgmma_bm * wgmma_bn where wgmma_split is not 1",
       [](const ScheduleConfig &p) { return hasRoomForSums(wgmmaShapeOf(p)); }},
  };
}

//===- Default configurations --------------------------------------------===//

/// Returns how many clusters of this many blocks an H100 runs at a time. Its 132 multiprocessors are in groups of 16
/// or 18.
static int64_t clustersAtOnce(int64_t blocks) { return (blocks > 2 ? 128 : 132) / blocks; }

/// Estimates the cycles of a GEMM with this many rows, computed from the rates in docs/cuda.md, not measured.
static double cyclesOf(const WgmmaProduct &product, const Contraction &c, int64_t rows, const WgmmaShape &shape) {
  constexpr double read = 1900;     // bytes per cycle from memory, for all: 3.35 TB/s at 1.755 GHz
  constexpr double copied = 40;     // bytes per cycle into a multiprocessor, while all of them copy
  constexpr double start = 1500;    // until the first stage has arrived
  constexpr double finished = 22;   // accumulators per cycle: 128 x 256 take 1,500
  constexpr double exchanged = 2.5; // accumulators per cycle that come from other blocks
  const double columns = double(largestExtent(c, c.columns)), k = double(largestExtent(c, c.reduction));
  const double batch = double(largestExtent(c, c.batch)), sums = double(shape.bm * shape.bn);
  const double tiles = batch * std::ceil(double(rows) / double(shape.bm)) * std::ceil(columns / double(shape.bn));
  const double rounds = std::ceil(tiles / double(clustersAtOnce(shape.split))), split = double(shape.split);
  const double steps = std::ceil(k / (double(product.k()) * split));
  // The cycles of a block of 64 rows by 32 bytes of K: for multiplying, and for reading shared memory.
  const double multiply = std::max(double(shape.bn) / 2, 16 + double(shape.bn) / 4);
  const double step = std::max(double(shape.bm / 64 * 4) * multiply, double(shape.stageBytes()) / copied);
  const double weights = batch * columns * k * double(tile::bytesOf(product.type));
  double finish = sums / finished * 2 / double(shape.groups);
  if (shape.split > 1) // blocks wait for each other twice, and no stage arrives meanwhile
    finish = finish / split + start + 200 * split + sums * (split - 1) / split / exchanged;
  return start + std::max(weights / read, rounds * steps * step) + rounds * finish;
}

/// Returns the shape with the least estimate for this many rows; among equal ones, that with the fewest parts and the
/// most columns. It has as many stages as fit, since few rows need many bytes in flight.
static WgmmaShape defaultOf(const WgmmaProduct &product, const Contraction &c, int64_t rows) {
  std::optional<WgmmaShape> best;
  for (int64_t split : {1, 2, 4, 8})
    for (int64_t bm : {64, 128, 256})
      for (int64_t bn : {256, 192, 128, 64})
        for (int64_t groups : {2, 1}) {
          WgmmaShape shape{bm, bn, groups, 2, 8, 1, split};
          for (WgmmaShape more = shape; ++more.stages <= 8 && more.sharedBytes() <= mostShared;)
            shape = more;
          const bool isLegal = shape.blocksOfGroup() > 0 && registers(shape) <= mostRegisters &&
                               shape.sharedBytes() <= mostShared && hasRoomForSums(shape);
          if (isLegal && (!best || cyclesOf(product, c, rows, shape) < cyclesOf(product, c, rows, *best)))
            best = shape;
        }
  return *best;
}

SmallVector<int64_t> wgmmaBounds(const StageContext &context, const Contraction &contraction) {
  SmallVector<int64_t> bounds;
  if (!isLarge(contraction) || !hasWgmma(context, contraction))
    return bounds;
  const WgmmaProduct product = *findWgmmaProduct(context, contraction);
  const int64_t most = largestExtent(contraction, contraction.rows);
  WgmmaShape shape = defaultOf(product, contraction, most); // shape of the variant for the next larger bound
  for (int64_t bound : {512, 256, 128, 64}) {
    if (bound >= most)
      continue;
    const WgmmaShape own = defaultOf(product, contraction, bound);
    if (cyclesOf(product, contraction, bound, own) > 0.9 * cyclesOf(product, contraction, bound, shape))
      continue;
    bounds.insert(bounds.begin(), bound);
    shape = own;
  }
  return bounds;
}

SearchSpace wgmmaSpace(const StageContext &context, const Contraction &contraction) {
  SearchSpace space;
  if (!hasWgmma(context, contraction))
    return space;
  const WgmmaShape defaults =
      defaultOf(*findWgmmaProduct(context, contraction), contraction, largestExtent(contraction, contraction.rows));
  space.push_back(makeParameter("wgmma_bm", {64, 128, 256}, defaults.bm));
  space.push_back(makeParameter("wgmma_bn", {64, 128, 192, 256}, defaults.bn));
  space.push_back(makeParameter("wgmma_groups", {1, 2}, defaults.groups));
  space.push_back(makeParameter("wgmma_stages", {2, 3, 4, 5, 6, 7, 8}, defaults.stages));
  space.push_back(makeParameter("wgmma_raster", {1, 4, 8, 16}, defaults.raster));
  space.push_back(makeParameter("wgmma_cluster", {1, 2}, defaults.cluster));
  space.push_back(makeParameter("wgmma_split", {1, 2, 4, 8}, defaults.split));
  space.rules = rules();
  return space;
}

} // namespace kiln::cuda
