// SPDX-License-Identifier: Apache-2.0
//
// The passes of compiler/parallel, at their places in the pipeline. This is the only connection between that folder and
// the rest of the compiler: with -DKILN_PARALLEL=OFF, ParallelPassesNone.cpp takes the place of ParallelPasses.cpp, and
// every library is for one process.
#pragma once

#include "compiler/pipeline/RankChoices.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::kiln {

/// Whether this build has these passes.
bool hasParallelPasses();

/// Adds the passes that shard entries, and the rows between their layers, among ranks.
void addSharding(OpPassManager &passes, const ::kiln::RankChoices &ranks);

/// Adds the passes that record the numbers of processes, and cut entries that train into pipeline stages.
void addProcesses(OpPassManager &passes, const ::kiln::RankChoices &ranks);

/// Adds the passes that sum gradients over replicas and pipeline stages.
void addGradientSums(OpPassManager &passes, const ::kiln::RankChoices &ranks);

/// Adds the passes of the parallel phase: sums over ranks in parts, and pipeline stages of the other entries.
void addDistribution(OpPassManager &passes, const ::kiln::RankChoices &ranks);

void registerParallelPasses();

} // namespace mlir::kiln
