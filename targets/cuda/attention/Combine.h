// SPDX-License-Identifier: Apache-2.0
//
// Combines the partial outputs of a row that several warps or blocks computed over disjoint keys (split KV), in order
// of the parts.
#pragma once

#include "targets/cuda/attention/Elements.h"
#include "targets/cuda/attention/TileShape.h"

namespace kiln::cuda {

/// Combines `count` partial outputs, which `read` loads one by one.
AttentionPart combineParts(tile::Builder &b, AttentionElements &elements, int64_t count,
                           llvm::function_ref<AttentionPart(tile::Value part)> read);

/// The partial outputs that blocks leave in scratch memory for the combine launch, for each row of the batch and each
/// KV split.
class AttentionPartials {
public:
  /// Appends the partial outputs to the plan's scratch memory.
  AttentionPartials(const StageContext &context, const Attention &attention, const AttentionShape &shape,
                    LaunchPlan &plan);

  /// `row`: the row's index among those of all batches. Only the thread of channel 0 writes the maximum and the sum.
  void store(tile::Builder &b, ElementEmitter &emitter, tile::Value row, tile::Value split, tile::Value channel,
             const AttentionPart &part) const;
  AttentionPart load(tile::Builder &b, ElementEmitter &emitter, tile::Value row, tile::Value split,
                     tile::Value channel) const;

private:
  int64_t kvSplits, channels;
  int64_t maxima, sums, outputs; // byte offsets in scratch memory
};

/// Appends the combine launch, with a thread for each element of the outputs.
mlir::LogicalResult buildAttentionCombine(tile::Builder &b, const StageContext &first, const StageContext &last,
                                          const Attention &attention, const AttentionShape &shape,
                                          const AttentionPartials &partials, LaunchPlan &plan);

} // namespace kiln::cuda
