// SPDX-License-Identifier: Apache-2.0
//
// Selects the runtime members of a model's archive, and renames all symbols in them for the model.
#pragma once

#include "compiler/library/Interface.h"
#include "compiler/object/Object.h"
#include "targets/target.h"

#include "llvm/Support/Error.h"

namespace kiln {

/// Returns all members of the runtime for a target's host.
llvm::Expected<std::vector<ObjectFile>> readRuntime(const Target &target);

/// Appends the runtime members that the model needs to `members`, and gives the symbols of all of them the model's
/// prefix. `hookPrefixes` are the prefixes of the hooks that kernels call. Returns the bytes of code.
llvm::Expected<uint64_t> joinMembers(std::vector<ObjectFile> &members, std::vector<ObjectFile> runtime,
                                     const ModelInterface &model, llvm::ArrayRef<Variant> variants,
                                     llvm::ArrayRef<llvm::StringRef> hookPrefixes);

} // namespace kiln
