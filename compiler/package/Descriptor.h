// SPDX-License-Identifier: Apache-2.0
//
// Emits the model's constant data (kiln_descriptor_t of runtime/src/core/model.h) and its public entry points as LLVM
// IR.
#pragma once

#include "compiler/library/Interface.h"

namespace llvm {
class Module;
}

namespace kiln {

/// Adds the global NAME_descriptor and, for each entry, the function NAME_<entry>, which gathers its arguments in
/// arrays and calls NAME_run. Adds functions that return the values of the header's macros. The module's triple
/// determines the width of size_t.
void emitDescriptor(llvm::Module &module, const ModelInterface &model, const std::vector<Variant> &variants);

} // namespace kiln
