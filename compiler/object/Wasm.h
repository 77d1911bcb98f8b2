// SPDX-License-Identifier: Apache-2.0
//
// Names and visibility of symbols in relocatable WebAssembly, which LLVM's objcopy does not change.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// Whether these are the bytes of WebAssembly.
bool isWasm(llvm::StringRef object);

/// The object with new names for some symbols, defined ones and others (the tool conventions' "linking" section).
llvm::Expected<std::string> renameWasmSymbols(llvm::StringRef object, const llvm::StringMap<std::string> &names);

/// The object with the hidden flag of each global symbol that it defines set, or not where `isExported`.
llvm::Expected<std::string> setWasmVisibility(llvm::StringRef object,
                                              llvm::function_ref<bool(llvm::StringRef)> isExported);

} // namespace kiln
