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

/// Returns the backend of which an object of the run time is a part, by the object's name: kiln_NAME_backend consists
/// of the objects whose names begin with NAME. Empty if the object belongs to no backend.
llvm::StringRef backendOfMember(llvm::StringRef member);

} // namespace kiln
