// SPDX-License-Identifier: Apache-2.0
//
// Converts a trace to the kiln dialect: each entry becomes a function, each stack a kiln.repeat, and each node an op of
// the same name. Locations are the scopes of the trace, so that a diagnostic names the layer.
//
// The module has the entries as they are written. What passes need to know further is recorded in attributes: what an
// entry's training asks for (compiler/dialect/Training.h), which entries are batched, and the storage formats that the
// spec states for weights (compiler/dialect/KilnDialect.h).
#pragma once

#include "kiln/graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kiln {

/// Returns a verified module, or null after diagnostics: a graph need not come from the DSL. The context must be able
/// to load func and kiln.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(const Graph &graph, mlir::MLIRContext *context,
                                              llvm::StringRef modelName);

} // namespace kiln
