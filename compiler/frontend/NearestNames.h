// SPDX-License-Identifier: Apache-2.0
//
// What to say of a name, or of a pattern of names, that nothing has: which names come nearest to it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace kiln {

/// "; nearest: decode, decode_first" of the names, up to three, the nearest first; nothing where there are none. A * of
/// `wanted` stands for any characters.
std::string nearestNames(llvm::StringRef wanted, llvm::ArrayRef<std::string> names);

/// The same for a regular expression: of each of its alternatives, without what is no letter of a name.
std::string nearestNamesOfRegex(llvm::StringRef wanted, llvm::ArrayRef<std::string> names);

} // namespace kiln
