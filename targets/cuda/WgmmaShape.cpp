// SPDX-License-Identifier: Apache-2.0
//
// Presets are computed, not measured: docs/cuda.md says from what.
#include "targets/cuda/WgmmaShape.h"

#include "compiler/schedule/SearchSpace.h"

namespace kiln::cuda {

using namespace mlir;

static constexpr int64_t mostShared = 227 << 10; // bytes of a block
static constexpr int64_t mostRegisters = 232;    // of a thread that multiplies
static constexpr int64_t multiprocessors = 132;  // at least so many tiles are wanted
static constexpr int64_t leastRows = 64;         // that there are to be at most

bool hasWgmma(const StepContext &context, const Contraction &contraction) {
  return largestExtent(contraction, contraction.rows) >= leastRows && findWgmmaProduct(context, contraction);
}

WgmmaShape wgmmaShapeOf(const SchedulePoint &point) {
  return {point.at("wgmma_bm"),     point.at("wgmma_bn"),     point.at("wgmma_groups"),
          point.at("wgmma_stages"), point.at("wgmma_raster"), point.at("wgmma_cluster")};
}

/// Of a thread that multiplies: its sums, addresses, and what the epilogue wants.
static int64_t registers(const WgmmaShape &shape) { return shape.sumsOfThread() + 64; }

/// Two groups get registers of the warps that copy; all threads begin with as many.
BlockNeeds needsOf(const WgmmaShape &shape) {
  BlockNeeds needs;
  needs.threads = shape.threads();
  needs.registers = shape.groups > 1 ? 65536 / shape.threads() / 8 * 8 : registers(shape);
  needs.sharedBytes = shape.sharedBytes();
  return needs;
}

static std::vector<TuningRule> rules() {
  return {
      {"64 rows of wgmma_bm at least for each of wgmma_groups",
       [](const SchedulePoint &p) { return wgmmaShapeOf(p).blocksOfGroup() > 0; }},
      {"232 registers at most: wgmma_bm * wgmma_bn / (128 * wgmma_groups) + 64",
       [](const SchedulePoint &p) { return registers(wgmmaShapeOf(p)) <= mostRegisters; }},
      {"227 KiB of shared memory at most for wgmma_stages of (wgmma_bm + wgmma_bn) * 128 + 16 bytes and 10 KiB of each "
       "of wgmma_groups",
       [](const SchedulePoint &p) { return wgmmaShapeOf(p).sharedBytes() <= mostShared; }},
  };
}

/// As many columns as are of use, but fewer where there would be too few tiles for all multiprocessors.
static WgmmaShape presetOf(const Contraction &c) {
  const int64_t columns = largestExtent(c, c.columns);
  WgmmaShape shape{128, columns <= 64 ? 64 : columns <= 128 ? 128 : 256, 2, 2, 8, 1};
  auto tiles = [&] {
    return double(largestExtent(c, c.batch)) * double(llvm::divideCeil(largestExtent(c, c.rows), shape.bm)) *
           double(llvm::divideCeil(columns, shape.bn));
  };
  while (shape.bn > 64 && tiles() < multiprocessors)
    shape.bn /= 2;
  for (WgmmaShape more = shape; ++more.stages <= 7 && more.sharedBytes() <= mostShared;)
    shape = more;
  return shape;
}

SearchSpace wgmmaSpace(const StepContext &context, const Contraction &contraction) {
  SearchSpace space;
  if (!hasWgmma(context, contraction))
    return space;
  const WgmmaShape preset = presetOf(contraction);
  space.push_back(makeParameter("wgmma_bm", {64, 128, 256}, preset.bm));
  space.push_back(makeParameter("wgmma_bn", {64, 128, 192, 256}, preset.bn));
  space.push_back(makeParameter("wgmma_groups", {1, 2}, preset.groups));
  space.push_back(makeParameter("wgmma_stages", {2, 3, 4, 5, 6, 7, 8}, preset.stages));
  space.push_back(makeParameter("wgmma_raster", {1, 4, 8, 16}, preset.raster));
  space.push_back(makeParameter("wgmma_cluster", {1, 2}, preset.cluster));
  space.rules = rules();
  return space;
}

} // namespace kiln::cuda
