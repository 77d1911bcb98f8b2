// SPDX-License-Identifier: Apache-2.0
//
// What a rank's library is, seen from outside, where several ranks call entries together.
#pragma once

#include "compiler/emit/Interface.h"
#include "compiler/emit/Lower.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// Weights and states of which the imported module has a rank's part only become that in the interface; a second time
/// it changes nothing.
void describeRanks(mlir::ModuleOp module, ModelInterface &model);

/// Weights and states of layers become those of a stage, likewise, if the imported module is cut in stages.
void describeStages(mlir::ModuleOp module, ModelInterface &model);

/// Says what of the choice of ranks cannot be had, or nothing.
std::string checkRanks(const Graph &graph, const LoweringOptions &lowering, llvm::ArrayRef<const Target *> targets);

} // namespace kiln
