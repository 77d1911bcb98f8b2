// SPDX-License-Identifier: Apache-2.0
//
// What of the run time comes into a model's archive, and the model's names for all that is in it.
#pragma once

#include "compiler/emit/Compile.h"

namespace kiln {

/// All members of the run time for a target's host.
llvm::Expected<std::vector<ObjectFile>> readRuntime(const Target &target);

/// Adds what the model can use of the run time to its members, and gives the symbols of all of them the model's prefix;
/// `hookPrefixes`: of what kernels call. The bytes of code.
llvm::Expected<uint64_t> joinMembers(std::vector<ObjectFile> &members, std::vector<ObjectFile> runtime,
                                     const ModelInterface &model, llvm::ArrayRef<Variant> variants,
                                     llvm::ArrayRef<llvm::StringRef> hookPrefixes);

/// Says which budget is exceeded, or nothing.
std::string checkBudgets(const CompileReport &report, const CompileOptions &options);

} // namespace kiln
