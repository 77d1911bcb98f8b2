// SPDX-License-Identifier: Apache-2.0
//
// How a build distributes a model among processes.
#pragma once

#include <cstdint>

namespace kiln {

/// How entries are split among the processes that call them together (kiln-shard).
struct RankChoices {
  int64_t ranks = 1;
  int64_t replicas = 1; // data-parallel replicas, each with its own inputs and `ranks` ranks
  /// The number of parts of sums over ranks, independent of the number of ranks; 0: one part per rank.
  int64_t reductionParts = 0;
  bool rows = false;         // sequence parallelism: between layers, each rank has some of the rows (kiln-shard-rows)
  int64_t stages = 1;        // pipeline stages, each with its share of the layers (kiln-cut-stages) and `ranks` ranks
  bool sharesStates = false; // whether the optimiser state is sharded among replicas (ZeRO-1)
  /// Whether sums of f16 and bf16 over ranks are computed in that type, as NCCL does; else in f32.
  bool sumsHalf = false;

  bool isSplit() const { return ranks > 1 || reductionParts > 0; }
};

} // namespace kiln
