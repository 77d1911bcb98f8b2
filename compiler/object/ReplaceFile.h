// SPDX-License-Identifier: Apache-2.0
//
// Atomic replacement of a library's files: a file under its final name is complete, even if the process or machine
// stops.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kiln {

/// Writes PATH.partial, and renames it to the path. Symbolic links are followed, mode and group are kept, and a path
/// that is not a regular file is an error. A partial file that a killed process left is overwritten. If two processes
/// write at the same time, the second one waits.
llvm::Error replaceFile(const std::string &path, llvm::StringRef bytes);

/// Like replaceFile(), but also creates the parent folders.
llvm::Error writeFile(const std::string &path, llvm::StringRef bytes);

} // namespace kiln
