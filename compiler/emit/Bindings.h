// SPDX-License-Identifier: Apache-2.0
//
// A library's functions in other languages: NAME.py, which loads the shared object by ctypes, and NAME.rs, a module of
// Rust that links it. Each is a pure function of the interface.
#pragma once

#include "compiler/emit/Interface.h"

namespace kiln {

/// Languages that there are bindings for, as on the command line: "python", "rust".
std::vector<std::string> bindingLanguages();

/// "NAME.py" and its text. Not for libraries of several processes.
struct Binding {
  std::string file, text;
};
/// For one of bindingLanguages(); `library`: the file of the shared object or archive that goes with it.
Binding writeBinding(const std::string &language, const ModelInterface &model, const std::string &library);

/// Of each language.
std::string writePython(const ModelInterface &model, const std::string &library);
std::string writeRust(const ModelInterface &model);

/// The number of an entry's symbol that each sequence's rows are counted by; -1: there is none.
int64_t ownRowsIndex(const EntryInterface &entry);
/// "tokens: i32 [tokens, 4]", for comments.
std::string describeArgument(const ArgumentInterface &argument);
/// The parameter for an extent: "tokens", or "tokens_extent" next to an argument "tokens".
std::string extentName(const EntryInterface &entry, const Symbol &symbol);
/// A name that no word of the language is: with "_" behind it where it is one.
std::string nameIn(const std::string &name, llvm::ArrayRef<llvm::StringRef> words);

} // namespace kiln
