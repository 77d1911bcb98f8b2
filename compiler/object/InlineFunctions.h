// SPDX-License-Identifier: Apache-2.0
//
// Links functions in LLVM's bitcode to a module of another compiler and inlines them. That compiler may be unable to
// state a call with vectors: it passes a pointer to a struct instead, and the call gets its operands back here.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace kiln {

/// A call `ptr NAME_in_memory(ptr)` stands for a call of NAME: the struct has a place for the result, then the
/// operands. It stores the result and returns the pointer.
inline constexpr llvm::StringRef inMemorySuffix = "_in_memory";

/// Functions that a module calls.
struct InlinedFunctions {
  std::vector<llvm::StringRef> bitcode; // modules; if two of them define a function, the first definition is used
  std::string features = {};  // of the CPU, which they need in addition to those of the callers: "+avx512vnni"
  bool optimizesLoops = true; // whether LLVM may unroll and vectorise the callers' loops
};

/// Defines these functions in the module, inlines all calls of them, and optimises the module.
llvm::Error inlineFunctions(llvm::Module &module, const InlinedFunctions &functions, llvm::TargetMachine &machine);

/// Returns the names of the functions that the bitcode defines.
llvm::Expected<std::vector<std::string>> functionNames(llvm::StringRef bitcode);

} // namespace kiln
