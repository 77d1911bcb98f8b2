// SPDX-License-Identifier: Apache-2.0
//
// Declarations of the passes of Passes.td, and of those that need more than options to be made.
#pragma once

#include <functional>
#include <memory>

#include "compiler/transforms/KernelGroups.h"
#include "mlir/Pass/Pass.h"

namespace mlir::func {
class FuncOp;
}

namespace mlir::kiln {

#define GEN_PASS_DECL
#include "compiler/transforms/Passes.h.inc"

/// TargetHooks::weightTile: the tile of a contraction weight with so many outputs and inputs; 0: dense.
using WeightTileFunction = std::function<int64_t(int64_t outputs, int64_t inputs)>;

/// `word`: TargetHooks::wordBytes.
std::unique_ptr<Pass> createLayOutWeights(WeightTileFunction weightTile, int64_t word);
std::unique_ptr<Pass> createFormKernels(GroupingRules rules, bool normMoments);

#define GEN_PASS_REGISTRATION
#include "compiler/transforms/Passes.h.inc"

/// The passes above, for kiln-opt.
void registerPasses();

} // namespace mlir::kiln
