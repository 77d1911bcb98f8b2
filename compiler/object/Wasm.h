// SPDX-License-Identifier: Apache-2.0
//
// Renames and hides symbols in relocatable WebAssembly, which LLVM's objcopy does not do.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// Whether the bytes are WebAssembly.
bool isWasm(llvm::StringRef object);

/// Returns the object with new names for some symbols, defined or not (the tool conventions' "linking" section).
llvm::Expected<std::string> renameWasmSymbols(llvm::StringRef object, const llvm::StringMap<std::string> &names);

/// Returns the object with the hidden flag set for each global symbol that it defines, except where `isExported` holds.
llvm::Expected<std::string> setWasmVisibility(llvm::StringRef object,
                                              llvm::function_ref<bool(llvm::StringRef)> isExported);

} // namespace kiln
