// SPDX-License-Identifier: Apache-2.0
//
// The interface of a rank's library if several ranks call entries together.
#pragma once

#include "compiler/library/Interface.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// Replaces weights and states in the interface by a rank's shards if the imported module only has these. A second call
/// changes nothing.
void describeRanks(mlir::ModuleOp module, ModelInterface &model);

/// Replaces the weights and states of layers by those of a pipeline stage if the imported module is cut in stages. A
/// second call changes nothing.
void describeStages(mlir::ModuleOp module, ModelInterface &model);

} // namespace kiln
