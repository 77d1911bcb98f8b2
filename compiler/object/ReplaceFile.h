// SPDX-License-Identifier: Apache-2.0
//
// How files of a library are written: whatever ends the process, or the machine, one that has its name is whole.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kiln {

/// Writes PATH.partial, which then takes the place of what is at the path: symbolic links are followed, mode and group
/// are kept, and what is no regular file is an error. A partial file that a killed process left is written again; of
/// two processes at a time the second one waits.
llvm::Error replaceFile(const std::string &path, llvm::StringRef bytes);

/// The same, and makes the folders above it.
llvm::Error writeFile(const std::string &path, llvm::StringRef bytes);

} // namespace kiln
