// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/RankChoices.h"

#include "compiler/pipeline/ParallelPasses.h"

#include <fmt/format.h>

namespace kiln {

std::string flagsOf(const RankChoices &ranks) {
  return (ranks.ranks > 1 ? fmt::format(" --ranks {}", ranks.ranks) : "") +
         (ranks.stages > 1 ? fmt::format(" --stages {}", ranks.stages) : "") +
         (ranks.replicas > 1 ? fmt::format(" --replicas {}", ranks.replicas) : "") +
         (ranks.reductionParts > 0 ? fmt::format(" --reduction-parts {}", ranks.reductionParts) : "") +
         (ranks.rows ? " --sequence-parallel" : "") + (ranks.sharesStates ? " --shard-optimizer" : "");
}

std::string checkBuilt(const RankChoices &ranks) {
  const std::string flags = flagsOf(ranks);
  return flags.empty() || mlir::kiln::hasParallelPasses()
             ? ""
             : fmt::format("several processes: built without KILN_PARALLEL; expected none of its options, got{}",
                           flags);
}

} // namespace kiln
