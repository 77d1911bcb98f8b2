// SPDX-License-Identifier: Apache-2.0
//
// From a trace to the kiln dialect: each entry becomes a function, each stack a kiln.repeat, each node an op of the
// same name. Locations are the scopes of the trace, so that a diagnostic names the layer.
#pragma once

#include "compiler/frontend/StoreWeights.h"
#include "kiln/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kiln {

/// A verified module, or null after diagnostics: a graph need not come from the DSL. The context has func and kiln
/// available. Weights are stored as the spec and the build say. Of several ranks it is what each of them computes
/// (kiln-shard).
mlir::OwningOpRef<mlir::ModuleOp> importGraph(const Graph &graph, mlir::MLIRContext *context, llvm::StringRef modelName,
                                              const StorageChoices &weights = {}, int64_t ranks = 1);

} // namespace kiln
