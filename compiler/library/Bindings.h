// SPDX-License-Identifier: Apache-2.0
//
// Bindings of a library for other languages: NAME.py, which loads the shared object with ctypes, and NAME.rs, a Rust
// module that links it. Each text is a pure function of the interface.
#pragma once

#include "compiler/library/Interface.h"
#include <map>

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

/// The names of a binding's parameters and methods. A name keeps its spelling unless it is one of the language's words,
/// those that the methods use themselves, or another name of the same kind: then underscores are appended. Names of
/// gradients, which contain those of weights, become identifiers.
class BindingNames {
public:
  BindingNames(const EntryInterface &entry, llvm::ArrayRef<llvm::StringRef> words);

  const std::string &argument(size_t index) const { return arguments[index]; }
  /// Returns "tokens", or "tokens_extent" if there is an argument "tokens".
  const std::string &extent(const Symbol &symbol) const { return extents.at(symbol.name); }

private:
  std::vector<std::string> arguments;
  std::map<std::string, std::string> extents;
};

/// Returns the names of the entries' methods.
std::vector<std::string> methodNames(const ModelInterface &model, llvm::ArrayRef<llvm::StringRef> words);

/// Returns what is wrong with a model's name in these languages, or an empty string.
std::string checkBindingName(const std::string &name, const std::vector<std::string> &languages);

} // namespace kiln
