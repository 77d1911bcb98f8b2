// SPDX-License-Identifier: Apache-2.0
//
// Derives entries that compute gradients (kiln/training.h).
#pragma once

#include "compiler/parallel/TrainStage.h"
#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// Adds the inputs that such an entry has after its function's own inputs (training_inputs).
void addTrainingInputs(mlir::func::FuncOp function, const Graph &graph, const Entry &entry);

/// Transforms an imported entry as its Training says: gradients become further results, or update the parameters with a
/// learning rate and a step that are further inputs. The optimiser state may be sharded among replicas. With pipeline
/// stages, the function is the entry's part for one role.
mlir::LogicalResult deriveTraining(mlir::func::FuncOp function, const Graph &graph, const Entry &entry,
                                   bool sharesStates, const TrainedStages &stages = {});

} // namespace kiln
