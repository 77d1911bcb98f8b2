// SPDX-License-Identifier: Apache-2.0
//
// How a build distributes a model among processes.
#pragma once

#include <cstdint>
#include <string>

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

/// Returns the choices as options of the command line, each with a space before it: " --ranks 2 --stages 3". Empty for
/// one process.
std::string flagsOf(const RankChoices &ranks);

/// Returns what is wrong with choices that the build lacks the passes for (KILN_PARALLEL), or an empty string.
std::string checkBuilt(const RankChoices &ranks);

} // namespace kiln
