// SPDX-License-Identifier: Apache-2.0
//
// The runtime's checks of input values: of those inputs that an entry's ops use as indices or lengths.
#pragma once

#include "compiler/library/Interface.h"
#include "mlir/IR/BuiltinOps.h"

namespace kiln {

/// Sets the range of each input whose elements are used as indices or lengths, also after data movement; of several
/// ranges, the smallest. `module` is the imported module, whose ops describe their index operands
/// (IndexOperandsInterface). Values that are computed from an input are not checked.
void addValueChecks(mlir::ModuleOp module, ModelInterface &model);

} // namespace kiln
