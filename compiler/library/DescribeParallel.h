// SPDX-License-Identifier: Apache-2.0
//
// Derives the ParallelLayout of a library from a module that is distributed among processes.
#pragma once

#include "compiler/library/Interface.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// If the imported module is what each of several processes computes, adds the layout to the interface, and replaces
/// its weights and states by those of one process: a rank's shards, a replica's part of the optimiser state, the layers
/// of a pipeline stage. A second call changes nothing.
void describeParallel(mlir::ModuleOp module, ModelInterface &model);

} // namespace kiln
