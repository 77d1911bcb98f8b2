// SPDX-License-Identifier: Apache-2.0
//
// What a stage of several computes of an entry, by what stands before and behind its layers.
#pragma once

#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::kiln {

/// The roles that stages have, in the order of KILN_ROLE_ (runtime/src/model.h): "first", "last" and, if there are more
/// than two, "middle". One stage has none, "".
llvm::SmallVector<llvm::StringRef> getStageRoles(int64_t stages);

/// The function of an entry for that role.
std::string getRoleName(llvm::StringRef entry, llvm::StringRef role);

} // namespace mlir::kiln
