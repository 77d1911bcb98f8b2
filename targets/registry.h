// SPDX-License-Identifier: Apache-2.0
//
// The registry of all targets in this build of Kiln.
#pragma once

#include "targets/target.h"

namespace kiln {

/// Returns all targets; those of one architecture are in order, best first. They live as long as the process.
llvm::ArrayRef<const Target *> allTargets();

/// Returns the target of that name, or null if there is none.
const Target *findTarget(llvm::StringRef name);

std::vector<std::string> targetNames();

/// Returns the targets that a library is compiled for unless its user names others, best first.
std::vector<std::string> defaultTargetNames();

/// Returns the backend that a folder of the run time implements: runtime/src/NAME implements kiln_NAME_backend. Empty
/// if it implements none.
llvm::StringRef backendOfFolder(llvm::StringRef folder);

} // namespace kiln
