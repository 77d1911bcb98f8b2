// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/ParallelPasses.h"

#include "compiler/parallel/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kiln {

bool hasParallelPasses() { return true; }

void addSharding(OpPassManager &passes, const ::kiln::RankChoices &ranks) {
  if (ranks.isSplit())
    passes.addPass(createShard({ranks.ranks, ranks.reductionParts, ranks.sumsHalf}));
  if (ranks.rows)
    passes.addPass(createShardRows());
}

void addProcesses(OpPassManager &passes, const ::kiln::RankChoices &ranks) {
  if (ranks.replicas > 1 || ranks.stages > 1)
    passes.addPass(createMarkProcesses({ranks.replicas, ranks.stages}));
  if (ranks.stages > 1)
    passes.addPass(createCutStages({ranks.stages, /*trainedOnly=*/true})); // each role is differentiated by itself
}

void addGradientSums(OpPassManager &passes, const ::kiln::RankChoices &ranks) {
  if (ranks.replicas > 1 || ranks.sharesStates)
    passes.addPass(createAverageGradients({ranks.sharesStates}));
  if (ranks.stages > 1)
    passes.addPass(createSumStageGradients());
}

void addDistribution(OpPassManager &passes, const ::kiln::RankChoices &ranks) {
  if (ranks.reductionParts > 0)
    passes.addPass(createReductionParts()); // after differentiation: gradients are sums over ranks, too
  if (ranks.stages > 1) {
    passes.addPass(createCanonicalizerPass()); // removes ops without uses
    passes.addPass(createCutStages({ranks.stages, /*trainedOnly=*/false}));
  }
}

void registerParallelPasses() { registerKilnParallelPasses(); }

} // namespace mlir::kiln
