// SPDX-License-Identifier: Apache-2.0
//
// The TMA variant of attention for compute capability 9.0: wgmma multiplies queries, keys, values and attention
// weights of f16 or bf16, and TMA copies tiles of keys and values (Shah et al. 2024, FlashAttention-3).
#pragma once

#include "targets/cuda/attention/Match.h"
#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

struct AttentionWgmmaShape {
  static constexpr int64_t lineBytes = 128, blockChannels = 64; // size of a line in shared memory

  int64_t groups;            // consumer warpgroups, each with 64 queries of the block
  int64_t keys;              // keys of a tile
  int64_t stages;            // pipeline stages of keys, and of values
  int64_t headDim, channels; // head dimensions: of queries and keys, and of values
  bool isLate;               // PV of a tile overlaps with the softmax of the next one

  int64_t queries() const { return 64 * groups; }
  int64_t threads() const { return (groups + 1) * 128; }
  // Registers of a thread after the producer warps have given up theirs; all threads share 65,536.
  int64_t producerRegisters() const { return groups > 2 ? 32 : 24; }
  int64_t consumerRegisters() const { return groups > 2 ? 160 : 240; }
  // Sizes and offsets in shared memory are in bytes; tiles are stored in blocks of 64 channels.
  int64_t queryBytes() const { return 64 * headDim * 2; } // queries of a warpgroup
  int64_t keyBytes() const { return keys * headDim * 2; }
  int64_t valueBytes() const { return keys * channels * 2; }
  int64_t keysAt() const { return groups * queryBytes(); }
  int64_t valuesAt() const { return keysAt() + stages * keyBytes(); }
  int64_t barriersAt() const { return valuesAt() + stages * valueBytes(); }
  int64_t sharedBytes() const { return barriersAt() + stages * 4 * 8; }
};

/// The tensor map of keys or values. Its dimensions are the elements of a key, the keys, and the flattened outer
/// dimensions, if there are any.
struct AttentionMap {
  TensorMap map;   // box not set yet
  unsigned keyDim; // the tensor's dimension over keys
};
/// The maps of both; findAttentionMaps() returns nullopt if there is no TMA variant.
struct AttentionMaps {
  AttentionMap keys, values;
};
std::optional<AttentionMaps> findAttentionMaps(const StageContext &first, const Attention &attention);

/// Returns the parameters of the TMA variant, if there is one. They have no effect on GPUs of other capabilities.
SearchSpace attentionWgmmaSpace(const StageContext &first, const Attention &attention);
AttentionWgmmaShape attentionWgmmaShapeOf(const Attention &attention, const ScheduleConfig &config);
BlockNeeds needsOf(const AttentionWgmmaShape &shape);

/// Appends the function, and makes it the TMA variant of the launches from `number` on, if there is one.
mlir::LogicalResult buildAttentionWgmma(tile::Builder &b, const StageContext &first, const StageContext &last,
                                        const Attention &attention, size_t number, const ScheduleConfig &config,
                                        LaunchPlan &plan);

} // namespace kiln::cuda
