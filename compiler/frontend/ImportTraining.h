// SPDX-License-Identifier: Apache-2.0
//
// Entries that compute gradients or train (kiln/training.h): their further inputs, and what they ask of later passes.
#pragma once

#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Adds the inputs that such an entry has after its function's own inputs (training_inputs), and records on the
/// function what its training asks for (mlir::kiln::TrainingRequest). Does nothing for other entries.
void importTraining(mlir::func::FuncOp function, const Graph &graph, const Entry &entry);

} // namespace kiln
