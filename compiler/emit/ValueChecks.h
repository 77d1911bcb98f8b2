// SPDX-License-Identifier: Apache-2.0
//
// What the run time checks of the values of inputs: those that an entry's ops take for indices or lengths.
#pragma once

#include "compiler/emit/Interface.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// States the range of each input whose elements are indices or lengths, moved about or not; of several ranges the
/// smallest. `module` is the imported one, whose ops say so themselves (IndexOperandsInterface); what it computes of an
/// input is not checked.
void addValueChecks(mlir::ModuleOp module, ModelInterface &model);

} // namespace kiln
