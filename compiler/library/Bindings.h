// SPDX-License-Identifier: Apache-2.0
//
// Bindings of a library for other languages: NAME.py, which loads the shared object with ctypes, and NAME.rs, a Rust
// module that links it. Each text is a pure function of the interface.
#pragma once

#include "compiler/library/Interface.h"

namespace kiln {

/// Returns the languages that have bindings, as spelled on the command line: "python", "rust".
std::vector<std::string> bindingLanguages();

/// The file name, such as "NAME.py", and its text. Libraries that run as several processes have no bindings.
struct Binding {
  std::string file, text;
};
/// Writes the binding for one of bindingLanguages(). `library` is the file name of the shared object or archive that it
/// uses.
Binding writeBinding(const std::string &language, const ModelInterface &model, const std::string &library);

/// Write the text of the Python and the Rust binding.
std::string writePython(const ModelInterface &model, const std::string &library);
std::string writeRust(const ModelInterface &model);

/// Returns the index of the entry's symbol that counts each sequence's rows, or -1 if there is none.
int64_t ownRowsIndex(const EntryInterface &entry);
/// Returns a description such as "tokens: i32 [tokens, 4]", for comments.
std::string describeArgument(const ArgumentInterface &argument);
/// Returns the parameter name for an extent: "tokens", or "tokens_extent" if there is an argument "tokens".
std::string extentName(const EntryInterface &entry, const Symbol &symbol);
/// Returns the name, with "_" appended if it is a keyword of the language.
std::string nameIn(const std::string &name, llvm::ArrayRef<llvm::StringRef> words);

} // namespace kiln
