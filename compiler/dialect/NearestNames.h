// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for error messages about a name, or a pattern of names, that does not exist: the names nearest to it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace kiln {

/// Returns "; nearest: decode, decode_first" with up to three of the names, the nearest first, or an empty string if
/// there are no names. A * in `wanted` matches any characters.
std::string nearestNames(llvm::StringRef wanted, llvm::ArrayRef<std::string> names);

/// Does the same for a regular expression. Each of its alternatives is compared, without characters that names cannot
/// have.
std::string nearestNamesOfRegex(llvm::StringRef wanted, llvm::ArrayRef<std::string> names);

} // namespace kiln
