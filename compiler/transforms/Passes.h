// SPDX-License-Identifier: Apache-2.0
//
// Declares the passes of Passes.td, and constructors of the passes that need more than options.
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

/// TargetHooks::weightTile: the tile size of a contraction weight with these numbers of outputs and inputs; 0: dense.
using WeightTileFunction = std::function<int64_t(int64_t outputs, int64_t inputs)>;

/// `word`: TargetHooks::interleaveBytes.
std::unique_ptr<Pass> createLayOutWeights(WeightTileFunction weightTile, int64_t word);
std::unique_ptr<Pass> createFormKernels(GroupingRules rules);

#define GEN_PASS_REGISTRATION
#include "compiler/transforms/Passes.h.inc"

} // namespace mlir::kiln
