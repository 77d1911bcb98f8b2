// SPDX-License-Identifier: Apache-2.0
//
// The graph of a model as it was written: the ops of the kiln dialect before optimisation.
#pragma once

#include "compiler/inspect/Inspection.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// Adds a graph for each of the inspection's entries, from the module that the frontend imports.
void addGraphs(Inspection &inspection, mlir::ModuleOp module);

} // namespace kiln
