// SPDX-License-Identifier: Apache-2.0
//
// Entries that compute gradients (kiln/training.h).
#pragma once

#include "compiler/frontend/TrainStage.h"
#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln {

/// An input of the name, or null.
mlir::Value inputNamed(mlir::func::FuncOp function, llvm::StringRef name);

/// The inputs that such an entry has behind its function's (training_inputs).
void addTrainingInputs(mlir::func::FuncOp function, const Graph &graph, const Entry &entry);

/// Makes of an imported entry what its Training says: gradients become further results, or change the parameters, by a
/// learning rate and a step that are further inputs. Replicas may share out what optimisers keep. Of several stages the
/// function is what one role does of the entry.
mlir::LogicalResult deriveTraining(mlir::func::FuncOp function, const Graph &graph, const Entry &entry,
                                   bool sharesStates, const TrainedStages &stages = {});

} // namespace kiln
