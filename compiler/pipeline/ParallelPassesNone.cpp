// SPDX-License-Identifier: Apache-2.0
//
// For builds without compiler/parallel. importModel refuses to distribute a model, so that there is nothing to add.
#include "compiler/pipeline/ParallelPasses.h"

namespace mlir::kiln {

bool hasParallelPasses() { return false; }

void addSharding(OpPassManager &, const ::kiln::RankChoices &) {}
void addProcesses(OpPassManager &, const ::kiln::RankChoices &) {}
void addGradientSums(OpPassManager &, const ::kiln::RankChoices &) {}
void addDistribution(OpPassManager &, const ::kiln::RankChoices &) {}
void registerParallelPasses() {}

} // namespace mlir::kiln
