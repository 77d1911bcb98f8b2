// SPDX-License-Identifier: Apache-2.0
//
// The form of an attention for capability 9.0: wgmma multiplies queries, keys, values and weights of f16 or bf16, and
// boxes of keys and values come by themselves (Shah et al. 2024, FlashAttention-3).
#pragma once

#include "targets/cuda/AttentionMatch.h"
#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

struct AttentionWgmmaShape {
  static constexpr int64_t lineBytes = 128, blockChannels = 64; // of a line in shared memory

  int64_t groups;          // of four warps, each with 64 queries of the block
  int64_t keys;            // of a tile
  int64_t stages;          // of keys, and of values
  int64_t depth, channels; // of a head
  bool isLate;             // values are added while the next tile has its softmax

  int64_t queries() const { return 64 * groups; }
  int64_t threads() const { return (groups + 1) * 128; }
  // Of a thread when those that bring tiles have given theirs: 65,536 are there for all.
  int64_t producerRegisters() const { return groups > 2 ? 32 : 24; }
  int64_t consumerRegisters() const { return groups > 2 ? 160 : 240; }
  // Bytes in shared memory, in blocks of 64 channels.
  int64_t queryBytes() const { return 64 * depth * 2; } // of a group
  int64_t keyBytes() const { return keys * depth * 2; }
  int64_t valueBytes() const { return keys * channels * 2; }
  int64_t keysAt() const { return groups * queryBytes(); }
  int64_t valuesAt() const { return keysAt() + stages * keyBytes(); }
  int64_t barriersAt() const { return valuesAt() + stages * valueBytes(); }
  int64_t sharedBytes() const { return barriersAt() + stages * 4 * 8; }
};

/// Of keys or values: what lies within a key, the keys, and, if there is something, what lies around them.
struct AttentionMap {
  TensorMap map;   // without its box
  unsigned keyDim; // the tensor's dimension that counts keys
};
/// Nothing: there is no such form.
struct AttentionMaps {
  AttentionMap keys, values;
};
std::optional<AttentionMaps> findAttentionMaps(const StepContext &first, const Attention &attention);

/// The parameters of the form, if it is there; without effect on GPUs of other capabilities.
SearchSpace attentionWgmmaSpace(const StepContext &first, const Attention &attention);
AttentionWgmmaShape attentionWgmmaShapeOf(const Attention &attention, const SchedulePoint &point);
BlockNeeds needsOf(const AttentionWgmmaShape &shape);

/// Appends the function, and gives the launches from `number` on this form, if it is there.
mlir::LogicalResult buildAttentionWgmma(tile::Builder &b, const StepContext &first, const StepContext &last,
                                        const Attention &attention, size_t number, const SchedulePoint &point,
                                        DevicePlan &plan);

} // namespace kiln::cuda
