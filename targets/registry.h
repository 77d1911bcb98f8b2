// SPDX-License-Identifier: Apache-2.0
//
// The registry of all targets in this build of Kiln.
#pragma once

#include "targets/target.h"

namespace kiln {

/// Returns all targets, each name once; those of one architecture are in order, best first. They live as long as the
/// process.
llvm::ArrayRef<const Target *> allTargets();

/// Returns the target of that name, or null if there is none. Of a GPU target it is the form whose host code is for
/// this machine, if there is one.
const Target *findTarget(llvm::StringRef name);

/// Returns the target of that name whose host code is for that triple, or null if there is none.
const Target *findTarget(llvm::StringRef name, llvm::StringRef hostTriple);

std::vector<std::string> targetNames();

/// Returns the targets that a library is compiled for unless its user names others, best first: those of the
/// architecture and the operating system of this machine.
std::vector<std::string> defaultTargetNames();

/// Returns the backend that a folder of the run time implements: runtime/src/NAME implements kiln_NAME_backend. Empty
/// if it implements none.
llvm::StringRef backendOfFolder(llvm::StringRef folder);

} // namespace kiln
