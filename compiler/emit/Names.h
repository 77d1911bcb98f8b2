// SPDX-License-Identifier: Apache-2.0
//
// Names of a model become those of C: of functions, parameters and files.
#pragma once

#include "compiler/emit/Interface.h"
#include "compiler/object/Object.h"

#include "llvm/Support/Error.h"

namespace kiln {

/// The function that says how many bytes an entry's arena has is NAME_<entry>_arena_bytes.
inline constexpr const char *arenaBytesSuffix = "_arena_bytes";

/// Says what is wrong with a model's name, or nothing.
std::string checkModelName(const std::string &name);

/// Extents, inputs and outputs become parameters; an entry is a function NAME_<entry> of the archive, like those of the
/// run time, whose members these are, and those that say what the header has as macros.
llvm::Error checkNames(const ModelInterface &model, llvm::ArrayRef<ObjectFile> runtime);

} // namespace kiln
