// SPDX-License-Identifier: Apache-2.0
//
// Default configurations are computed, not measured; docs/cuda.md shows how.
#include "targets/cuda/attention/SearchSpace.h"

#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"

namespace kiln::cuda {

using namespace mlir;

namespace {

constexpr int64_t halfShared = 80 << 10; // a block's, if a multiprocessor of 8.0 is to hold two
constexpr int64_t mostRegisters = 255;   // per thread
constexpr int64_t leastTilesOfSplit = 2; // for many rows, or the second launch costs more than it saves
constexpr int64_t mostOutputs = 1 << 30; // that threads of a second launch can index
constexpr int64_t leastKeys = 16, mostKeys = 64, mostKvSplits = 32;

struct Extents {
  int64_t batch, rows, keys; // at the kernel's bounds

  Extents(const Attention &attention, func::FuncOp kernel)
      : batch(largestValue(extentOf(attention.batch, kernel->getContext()), kernel)),
        rows(largestValue(extentOf(attention.rows, kernel->getContext()), kernel)),
        keys(largestValue(attention.keys, kernel)) {}
};

//===- Rules -------------------------------------------------------------===//

/// Estimates the registers of a thread: scores, outputs, maxima and sums, the loads of four K indices, and addresses.
/// With tensor cores, the loads are the fragments of its rows and those of 16 keys or channels.
int64_t registersOf(const AttentionShape &s) {
  const int64_t ofRow = (s.keys + s.paddedChannels()) / s.threadsOfRow() + 2;
  return s.mma ? s.rowsOfThread * (ofRow + 2) + 4 + 60 : s.rowsOfThread * (ofRow + 4) + 4 + 40;
}

TuningRule ruleOf(const Attention &attention, const char *text, bool (*holds)(const AttentionShape &)) {
  return {text, [attention, holds](const ScheduleConfig &config) { // a copy, since the rule may outlive the strategy
            return holds(attentionShapeOf(attention, config));
          }};
}

bool hasRoom(const AttentionShape &s) { return s.sharedBytes() <= leastSharedLimit; }
bool hasRegisters(const AttentionShape &s) { return registersOf(s) <= mostRegisters; }

std::vector<TuningRule> fmaRules(const Attention &attention) {
  return {
      ruleOf(attention, "32 to 512 threads: queries / queries_per_thread * 8 * key_warps",
             [](const AttentionShape &s) {
               return s.threadsOfGroup() % 32 == 0 && s.threadsOfGroup() > 0 && s.threads() <= 512;
             }),
      ruleOf(attention, "key_warps = 1 or queries = 4 * queries_per_thread",
             [](const AttentionShape &s) { return s.parts == 1 || s.threadsOfGroup() == 32; }),
      ruleOf(attention, "99 KiB of shared memory at most for queries, keys, values and weights", hasRoom),
      ruleOf(attention, "255 registers at most: queries_per_thread * (keys / 8 + channels / 8 + 6) + 44", hasRegisters),
  };
}

std::vector<TuningRule> mmaRules(const Attention &attention) {
  return {
      ruleOf(attention, "32 to 512 threads: 32 * mma_queries / mma_queries_per_warp",
             [](const AttentionShape &s) { return s.rows >= s.rowsOfWarp() && s.threads() <= 512; }),
      ruleOf(attention,
             "99 KiB of shared memory at most for queries and stages of keys and values, and for f32 outputs", hasRoom),
      ruleOf(attention, "255 registers at most: mma_queries_per_warp / 8 * (mma_keys / 4 + channels / 4 + 4) + 64",
             hasRegisters),
  };
}

//===- Default configurations --------------------------------------------===//

bool fitsTwice(const AttentionShape &s) { return s.sharedBytes() <= halfShared && hasRegisters(s); }

/// Chooses the largest tiles with which two blocks fit; keys are reduced before queries, since each key that is read
/// serves all the tile's queries. Four warps hide each other's shared-memory latency.
AttentionShape defaultOfMany(const Attention &attention, int64_t rows, int64_t batch, int64_t keys) {
  AttentionShape s{128, keys, 8, 1, 1, attention.headDim, attention.channels};
  auto halve = [&] { s.rows /= 2, s.rowsOfThread /= 2; };
  while (s.rows > 32 && (s.rows / 2 >= rows || batch * llvm::divideCeil(rows, s.rows) < leastMultiprocessors))
    halve();
  auto fits = [&] { return fitsTwice(s); };
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

/// Four warps, with as many loads of keys and values in flight as fit: some 32 KiB per multiprocessor cover the memory
/// latency of an H200.
AttentionShape defaultOfFew(const Attention &attention, int64_t rows, int64_t keys) {
  const int64_t ofThread = rows <= 4 ? 1 : rows <= 8 ? 2 : 4;
  AttentionShape s{4 * ofThread, keys, ofThread, 4, 1, attention.headDim, attention.channels};
  auto fits = [&] { return fitsTwice(s); };
  while (!fits() && s.keys > leastKeys)
    s.keys /= 2;
  while (!fits() && s.parts > 1)
    s.parts /= 2;
  return s;
}

/// Warps of 32 rows, which read shared memory half as often as warps of 16, as long as there are four such warps and
/// registers hold their outputs and the scores of some keys. f32 takes twice the space, so that there are two such
/// warps.
AttentionShape defaultOfMma(const Attention &attention, int64_t rows, int64_t batch, int64_t keys) {
  AttentionShape s{128, keys, 4, 1, 1, attention.headDim, attention.channels, attention.mma->type, 2};
  auto halve = [&] { s.rows /= 2, s.rowsOfThread = 2; };
  while (s.rows > 32 && (s.rows / 2 >= rows || batch * llvm::divideCeil(rows, s.rows) < leastMultiprocessors))
    halve();
  while (!fitsTwice(s) && (s.keys > leastKeys || s.rows > 32)) {
    for (s.keys = keys; s.keys > leastKeys && !fitsTwice(s);)
      s.keys /= 2;
    if (!fitsTwice(s) && s.rows > 32) {
      halve();
      s.rowsOfThread = s.isHalf() || s.rows == 32 ? 2 : 4;
      if (!hasRegisters(s))
        s.rowsOfThread = 2;
    }
  }
  return s;
}

AttentionShape defaultOf(const Attention &attention, const Extents &extents) {
  const int64_t keys = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(extents.keys)), leastKeys, mostKeys);
  AttentionShape s = extents.rows <= mostSkinnyRows ? defaultOfFew(attention, extents.rows, keys)
                     : attention.mma                ? defaultOfMma(attention, extents.rows, extents.batch, keys)
                                                    : defaultOfMany(attention, extents.rows, extents.batch, keys);
  const int64_t blocks = extents.batch * llvm::divideCeil(extents.rows, s.rows);
  const bool isFew = extents.rows <= mostSkinnyRows;
  auto isSplit = [&] {
    const int64_t tiles = llvm::divideCeil(extents.keys, s.keys * s.parts);
    return tiles >= (isFew ? 1 : leastTilesOfSplit) * 2 * s.kvSplits;
  };
  // Use two blocks per multiprocessor if there are enough keys. On CUDA cores key tiles shrink for that: for many
  // queries to 32 keys; for few queries down to a tile for each warp, whose time is proportional to its keys.
  while (s.kvSplits < mostKvSplits && blocks * s.kvSplits < 2 * leastMultiprocessors) {
    if (isSplit())
      s.kvSplits *= 2;
    else if (!s.mma && s.keys > (isFew ? leastKeys : 32))
      s.keys /= 2;
    else
      break;
  }
  return s;
}

} // namespace

//===- Search space ------------------------------------------------------===//

AttentionShape attentionShapeOf(const Attention &attention, const ScheduleConfig &config) {
  if (!config.contains("mma_queries"))
    return {config.at("queries"),   config.at("keys"),     config.at("queries_per_thread"),
            config.at("key_warps"), config.at("split_kv"), attention.headDim,
            attention.channels};
  return {config.at("mma_queries"),
          config.at("mma_keys"),
          config.at("mma_queries_per_warp") / 8,
          1,
          config.at("split_kv"),
          attention.headDim,
          attention.channels,
          attention.mma->type,
          config.at("mma_key_stages")};
}

SearchSpace attentionSpace(const Attention &attention, func::FuncOp kernel) {
  const Extents extents(attention, kernel);
  const AttentionShape defaults = defaultOf(attention, extents);
  const bool maySplit = double(extents.batch) * double(extents.rows) * double(attention.channels) < mostOutputs;
  SearchSpace space;
  if (defaults.mma) {
    space.push_back({"mma_queries", {16, 32, 64, 128}, defaults.rows});
    space.push_back({"mma_queries_per_warp", {16, 32}, defaults.rowsOfWarp()});
    space.push_back({"mma_keys", {16, 32, 64, 128}, defaults.keys});
    space.push_back({"mma_key_stages", {2, 3, 4}, defaults.stages});
  } else {
    space.push_back({"queries", {4, 8, 16, 32, 64, 128}, defaults.rows});
    space.push_back({"queries_per_thread", {1, 2, 4, 8}, defaults.rowsOfThread});
    space.push_back({"keys", {16, 32, 64}, defaults.keys});
    space.push_back({"key_warps", {1, 2, 4, 8}, defaults.parts});
  }
  space.push_back(maySplit ? TuningParameter{"split_kv", {1, 2, 4, 8, 16, 32}, defaults.kvSplits}
                           : TuningParameter{"split_kv", {1}, 1});
  space.rules = defaults.mma ? mmaRules(attention) : fmaRules(attention);
  return space;
}

/// On CUDA cores, a thread has `across` accumulators per row. With tensor cores, a warp loads keys and values once for
/// all its rows, and queries once for the keys of a tile.
BlockNeeds needsOf(const AttentionShape &s) {
  auto traffic = [&](int64_t across) {
    return 4.0 * double(s.rowsOfThread + across) / double(s.rowsOfThread * across);
  };
  const double ofBoth = s.mma ? double(s.bytes()) * (1.0 / double(s.rowsOfWarp()) + 0.5 / double(s.keys))
                              : (traffic(s.keys / 8) + traffic(s.paddedChannels() / 8)) / 2;
  return {s.threads(), registersOf(s), s.sharedBytes(), ofBoth, s.mma ? tile::bytesOf(*s.mma) : 0};
}

} // namespace kiln::cuda
