// SPDX-License-Identifier: Apache-2.0
//
// All targets that this build of Kiln has.
#pragma once

#include "targets/target.h"

namespace kiln {

/// Of one architecture the best first. They live as long as the process.
llvm::ArrayRef<const Target *> allTargets();

/// Null if there is none of that name.
const Target *findTarget(llvm::StringRef name);

std::vector<std::string> targetNames();

/// What a library is compiled for unless its user names targets, best first.
std::vector<std::string> defaultTargetNames();

/// The backend of a target that an object of the run time is a part of, by its name: kiln_NAME_backend is made of those
/// whose names begin with NAME. Empty: it is no backend's.
llvm::StringRef backendOfMember(llvm::StringRef member);

} // namespace kiln
