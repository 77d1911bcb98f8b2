// SPDX-License-Identifier: Apache-2.0
//
// Outputs of a row that several warps or blocks have computed, each of its own keys, become one: in order of the parts.
#pragma once

#include "targets/cuda/AttentionElements.h"
#include "targets/cuda/AttentionShape.h"

namespace kiln::cuda {

/// Of so many parts, read one by one.
AttentionPart joinParts(tile::Builder &b, AttentionElements &elements, int64_t count,
                        llvm::function_ref<AttentionPart(tile::Value part)> read);

/// What blocks leave for the second launch in scratch memory, for each row of the batch and each split.
class AttentionPartials {
public:
  /// Behind what the plan has of scratch memory so far, to which it adds them.
  AttentionPartials(const StepContext &context, const Attention &attention, const AttentionShape &shape,
                    DevicePlan &plan);

  /// `row`: its number among those of all batches. Of the maximum and the sum one thread does the writing.
  void store(tile::Builder &b, Reader &reader, tile::Value row, tile::Value split, tile::Value channel,
             const AttentionPart &part) const;
  AttentionPart load(tile::Builder &b, Reader &reader, tile::Value row, tile::Value split, tile::Value channel) const;

private:
  int64_t splits, channels;
  int64_t maxima, sums, outputs; // where they are, in bytes
};

/// Appends the second launch, a thread for each element of the outputs.
mlir::LogicalResult buildAttentionJoin(tile::Builder &b, const StepContext &first, const StepContext &last,
                                       const Attention &attention, const AttentionShape &shape,
                                       const AttentionPartials &partials, DevicePlan &plan);

} // namespace kiln::cuda
