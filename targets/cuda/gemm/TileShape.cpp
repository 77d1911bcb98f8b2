// SPDX-License-Identifier: Apache-2.0
//
// Default configurations are computed, not measured; docs/cuda.md shows how.
#include "targets/cuda/gemm/TileShape.h"

#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/gemm/InputTile.h"
#include <cmath>

namespace kiln::cuda {

using namespace mlir;
using tile::MmaType;

static constexpr int64_t leastSplitK = 512; // K of each part: its inputs have at least four times the bytes of its sums
static constexpr int64_t leastK = 48;       // K of each part, where blocks are too small to hide memory latency

std::optional<MmaType> mmaTypeOf(const StageContext &context, const Contraction &contraction) {
  linalg::GenericOp op = contraction.op;
  Type a = getElementTypeOrSelf(op->getOperand(contraction.a)), b = getElementTypeOrSelf(op->getOperand(contraction.b));
  if (a == b && !a.isF32())
    return a.isF16() ? MmaType::F16 : MmaType::BF16;
  func::FuncOp kernel = context.kernel;
  const bool mayRound = op->hasAttr(tf32AttrName) || kernel->hasAttr(tf32AttrName);
  return mayRound && !op->hasAttr("kiln.strict") ? std::optional(MmaType::TF32) : std::nullopt;
}

TileShape tileShapeOf(std::optional<MmaType> mma, const ScheduleConfig &config) {
  if (!mma)
    return {
        config.at("bm"), config.at("bn"), config.at("bk"), config.at("tm"), config.at("tn"), config.at("stages"), mma};
  return {config.at("mma_bm"),
          config.at("mma_bn"),
          config.at("mma_bytes") / tile::bytesOf(*mma),
          config.at("mma_wm"),
          config.at("mma_wn"),
          config.at("mma_stages"),
          mma};
}

//===- Rules -------------------------------------------------------------===//

/// Estimates shared memory, with padding where inputs may have it. `ofK`: bk in bytes.
static int64_t sharedBytes(const TileShape &s, int64_t ofK) {
  const int64_t stages = s.mma ? s.stages * (s.bm + s.bn + 16) * ofK : s.stages * (s.bm + s.bn) * (ofK + 16);
  return std::max(stages, 4 * s.bm * (s.bn + 8));
}

/// Estimates the registers of a thread: accumulators, operands of four K indices, loads in flight, and addresses.
static int64_t registers(const TileShape &s) {
  return s.tm * s.tn + 4 * (s.tm + s.tn) + (s.bm + s.bn) * s.bk / s.threads() + 40;
}

/// Estimates the registers of a thread: its part of the warp's accumulators, operands of 16 rows of one input and all
/// of the other, and addresses.
static int64_t mmaRegisters(const TileShape &s) { return s.tm * s.tn / 32 + s.tm / 4 + 4 + 60; }

BlockNeeds needsOf(const TileShape &s) {
  const int64_t bytes = s.mma ? tile::bytesOf(*s.mma) : 4;
  return {s.threads(), s.mma ? mmaRegisters(s) : registers(s), sharedBytes(s, bytes * s.bk),
          double(bytes * (s.tm + s.tn)) / double(s.tm * s.tn), s.mma ? bytes : 0};
}

static std::vector<TuningRule> fmaRules() {
  auto shapeOf = [](const ScheduleConfig &config) { return tileShapeOf(std::nullopt, config); };
  return {
      {"64 to 512 threads: bm * bn / (tm * tn)",
       [=](const ScheduleConfig &p) { return shapeOf(p).threads() >= 64 && shapeOf(p).threads() <= 512; }},
      {"99 KiB of shared memory at most for stages of (bm + bn) * (bk + 4) and for sums of bm * (bn + 8)",
       [=](const ScheduleConfig &p) { return sharedBytes(shapeOf(p), 4 * shapeOf(p).bk) <= leastSharedLimit; }},
      {"255 registers at most: tm * tn + 4 * (tm + tn) + (bm + bn) * bk / threads + 40",
       [=](const ScheduleConfig &p) { return registers(shapeOf(p)) <= 255; }},
  };
}

/// The rules are the same for all types, since their lines have the same number of bytes.
static std::vector<TuningRule> mmaRules() {
  auto shapeOf = [](const ScheduleConfig &config) { return tileShapeOf(MmaType::F16, config); };
  return {
      {"64 to 512 threads: 32 * mma_bm * mma_bn / (mma_wm * mma_wn), and warps' tiles within the block's",
       [=](const ScheduleConfig &p) {
         const TileShape s = shapeOf(p);
         return s.threads() >= 64 && s.threads() <= 512 && s.tm <= s.bm && s.tn <= s.bn;
       }},
      {"99 KiB of shared memory at most for stages of (mma_bm + mma_bn + 16) * mma_bytes and for f32 sums of "
       "mma_bm * (mma_bn + 8)",
       [=](const ScheduleConfig &p) { return sharedBytes(shapeOf(p), p.at("mma_bytes")) <= leastSharedLimit; }},
      {"255 registers at most: mma_wm * mma_wn / 32 + mma_wm / 4 + 64",
       [=](const ScheduleConfig &p) { return mmaRegisters(shapeOf(p)) <= 255; }},
  };
}

//===- Default configurations --------------------------------------------===//

namespace {

/// The tile of a block, and the number of split-K parts.
struct DefaultShape {
  int64_t bm, bn, split = 1;
};

} // namespace

/// Large tiles, which read the least, as long as there are blocks for all multiprocessors. If there are not, tiles of
/// 64 x 64 and split-K, as long as the parts are long; then tiles of 32 x 32.
static DefaultShape defaultOf(const Contraction &c, int64_t rows) {
  const int64_t columns = largestExtent(c, c.columns), k = largestExtent(c, c.reduction);
  auto tileOf = [](int64_t extent) { return extent <= 32 ? 32 : extent <= 64 ? 64 : 128; };
  DefaultShape defaults{tileOf(rows), tileOf(columns)};
  auto isFew = [&] {
    const int64_t tiles = llvm::divideCeil(rows, defaults.bm) * llvm::divideCeil(columns, defaults.bn);
    return largestExtent(c, c.batch) * tiles * defaults.split < leastMultiprocessors;
  };
  auto shrink = [&](int64_t least) {
    while (isFew() && std::max(defaults.bm, defaults.bn) > least)
      (defaults.bm >= defaults.bn ? defaults.bm : defaults.bn) /= 2;
  };
  shrink(64);
  while (isFew() && defaults.split < 16 && k / (2 * defaults.split) >= leastSplitK)
    defaults.split *= 2;
  shrink(32);
  return defaults;
}

bool isLarge(const Contraction &c) {
  return double(largestExtent(c, c.columns)) * double(largestExtent(c, c.reduction)) >= double(256 << 10);
}

/// On CUDA cores a block of few threads waits most of the time: use eight blocks for each multiprocessor, by split-K
/// (M-1260). Then half as many blocks of 64 x 64 are better than blocks of 32 x 64 (M-1289).
static DefaultShape fmaDefaultOf(const Contraction &c, int64_t rows) {
  DefaultShape defaults = defaultOf(c, rows);
  const int64_t tiles = largestExtent(c, c.batch) * llvm::divideCeil(rows, defaults.bm) *
                        llvm::divideCeil(largestExtent(c, c.columns), defaults.bn);
  while (isLarge(c) && defaults.bm * defaults.bn <= 64 * 64 && tiles * defaults.split < 8 * leastMultiprocessors &&
         defaults.split < 16 && largestExtent(c, c.reduction) / (2 * defaults.split) >= leastK)
    defaults.split *= 2;
  if (isLarge(c) && rows > 32 && defaults.bm == 32 && defaults.bn == 64)
    defaults.bm = 64;
  return defaults;
}

/// Adds how blocks share K: that of each tile (split-K), or, if the tuner finds that faster, that of all tiles
/// together (stream-K, M-1387). On 9.0, tensor cores run the TMA variant instead.
static void addSharing(SearchSpace &space, const DefaultShape &defaults, std::optional<MmaType> mma) {
  space.push_back(makeParameter("split_k", {1, 2, 4, 8, 16}, defaults.split));
  // One or two blocks for each multiprocessor of an A100, and of an H100 or the largest GPU of 8.9.
  const std::vector<int64_t> blocks =
      mma ? std::vector<int64_t>{0, 108, 128, 216} : std::vector<int64_t>{0, 108, 132, 216, 264};
  space.push_back(makeParameter("stream_k", blocks, 0));
  space.rules.push_back({"split_k of 1 where stream_k is not 0",
                         [](const ScheduleConfig &p) { return p.at("split_k") == 1 || p.at("stream_k") == 0; }});
}

static SearchSpace fmaSpace(const Contraction &c) {
  const DefaultShape defaults = fmaDefaultOf(c, largestExtent(c, c.rows));
  const int64_t sums = defaults.bm * defaults.bn;
  SearchSpace space;
  space.push_back(makeParameter("bm", {32, 64, 128}, defaults.bm));
  space.push_back(makeParameter("bn", {32, 64, 128}, defaults.bn));
  space.push_back(makeParameter("bk", {8, 16, 32}, largestExtent(c, c.reduction) <= 8 ? 8 : 16));
  space.push_back(makeParameter("tm", {4, 8}, sums >= 64 * 64 ? 8 : 4));
  space.push_back(makeParameter("tn", {4, 8}, sums >= 128 * 64 ? 8 : 4));
  space.push_back(makeParameter("stages", {2, 3, 4}, 3));
  space.rules = fmaRules();
  addSharing(space, defaults, std::nullopt);
  return space;
}

/// Four warps of up to 64 x 64, which read the least from shared memory; eight warps if the inputs pass through
/// registers on their way to shared memory, since that takes some of the registers.
static SearchSpace mmaSpace(const StageContext &context, const Contraction &c, MmaType type) {
  const DefaultShape defaults = defaultOf(c, largestExtent(c, c.rows));
  const bool areCopied =
      isCopied(ContractionInput(context, c, true), type) && isCopied(ContractionInput(context, c, false), type);
  const int64_t kBytes = largestExtent(c, c.reduction) * tile::bytesOf(type);
  SearchSpace space;
  space.push_back(makeParameter("mma_bm", {32, 64, 128}, defaults.bm));
  space.push_back(makeParameter("mma_bn", {32, 64, 128}, defaults.bn));
  space.push_back(makeParameter("mma_bytes", {32, 64, 128}, kBytes <= 32 ? 32 : 64));
  space.push_back(makeParameter("mma_wm", {16, 32, 64}, defaults.bm / 2));
  space.push_back(makeParameter("mma_wn", {16, 32, 64}, defaults.bn / (areCopied || defaults.bn < 64 ? 2 : 4)));
  space.push_back(makeParameter("mma_stages", {2, 3, 4, 5}, 4));
  space.rules = mmaRules();
  addSharing(space, defaults, type);
  return space;
}

SmallVector<int64_t> tileBounds(const Contraction &contraction) {
  SmallVector<int64_t> bounds;
  if (!isLarge(contraction))
    return bounds;
  const int64_t most = largestExtent(contraction, contraction.rows);
  DefaultShape last = fmaDefaultOf(contraction, most); // configuration of the variant for the next larger bound
  for (int64_t bound : {512, 256, 128, 64}) {
    const DefaultShape defaults = fmaDefaultOf(contraction, bound);
    if (bound >= most || (defaults.bm == last.bm && defaults.bn == last.bn && defaults.split == last.split))
      continue;
    bounds.insert(bounds.begin(), bound);
    last = defaults;
  }
  return bounds;
}

SearchSpace tileSpace(const StageContext &context, const Contraction &contraction) {
  std::optional<MmaType> mma = mmaTypeOf(context, contraction);
  return mma ? mmaSpace(context, contraction, *mma) : fmaSpace(contraction);
}

} // namespace kiln::cuda
