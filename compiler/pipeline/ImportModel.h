// SPDX-License-Identifier: Apache-2.0
//
// Imports a model, and runs the phases of the pipeline that decide which entries it has and what they compute. Its
// interface is described after them.
#pragma once

#include "compiler/frontend/Import.h"
#include "compiler/pipeline/Pipeline.h"

namespace kiln {

/// Called with the module as imported, before passes that change it run.
using ConfigurePasses = llvm::function_ref<void(mlir::ModuleOp, mlir::PassManager &)>;

/// Returns the module after the import phase and, if entries train, are batched or are distributed among processes,
/// the derive and parallel phases; null after diagnostics. Other models are as they are written, with the storage
/// formats that the spec and the build select. With several ranks, the module is what each of them computes.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const Graph &graph, mlir::MLIRContext *context, llvm::StringRef modelName,
                                              const StorageChoices &weights = {}, const RankChoices &ranks = {},
                                              ConfigurePasses configure = nullptr);

/// Adds the phases after importModel.
void buildLowering(mlir::OpPassManager &passes, mlir::ModuleOp module, const mlir::kiln::PipelineOptions &options);

} // namespace kiln
