// SPDX-License-Identifier: Apache-2.0
//
// Checks what a model with custom functions is compiled to.
#pragma once

#include "compiler/driver/Compile.h"
#include "targets/target.h"

namespace kiln {

/// Returns what these options cannot do with functions that only the program has, or an empty string.
std::string checkCustom(const ModelInterface &model, const CompileOptions &options,
                        llvm::ArrayRef<const Target *> targets);

} // namespace kiln
