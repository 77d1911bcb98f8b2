// SPDX-License-Identifier: Apache-2.0
//
// Libraries of some kinds, such as those that call functions of the program or are for several processes, cannot have
// all that other libraries have. One table lists what they cannot have.
#pragma once

#include "compiler/driver/Compile.h"
#include "targets/target.h"

namespace kiln {

/// Returns what the options ask for that a library of this kind cannot have, or an empty string.
std::string checkKind(const ModelInterface &model, const CompileOptions &options,
                      llvm::ArrayRef<const Target *> targets);

} // namespace kiln
