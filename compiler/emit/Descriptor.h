// SPDX-License-Identifier: Apache-2.0
//
// The model's constant data (kiln_descriptor_t of runtime/src/model.h) and its public entry points, as LLVM IR.
#pragma once

#include "compiler/emit/Interface.h"

namespace llvm {
class Module;
}

namespace kiln {

/// Adds the global NAME_descriptor and, for each entry, the function NAME_<entry>, which gathers its arguments into
/// arrays and calls NAME_run; and what the header has as macros as functions. The module's triple says how wide a
/// size_t is.
void emitDescriptor(llvm::Module &module, const ModelInterface &model, const std::vector<Variant> &variants);

} // namespace kiln
