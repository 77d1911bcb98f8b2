// SPDX-License-Identifier: Apache-2.0
//
// Names of a model become those of C and C++: of functions, parameters, macros and files. This is the one place that
// decides which of them a header can bear, and what it calls a parameter whose own name is taken.
#pragma once

#include "compiler/emit/Interface.h"
#include "compiler/object/Object.h"

#include "llvm/Support/Error.h"
#include <map>

namespace kiln {

/// The function that says how many bytes an entry's arena has is NAME_<entry>_arena_bytes.
inline constexpr const char *arenaBytesSuffix = "_arena_bytes";

/// Says what is wrong with a model's name, or nothing.
std::string checkModelName(const std::string &name);

/// Whether all that the headers and the archive define has names of its own, which no keyword, macro or declaration of
/// standard headers has. `runtime` are the members of the run time, whose functions are the model's, too.
llvm::Error checkNames(const ModelInterface &model, llvm::ArrayRef<ObjectFile> runtime);

/// What the generated headers call the parameters of an entry: each by its own name, or, where that is a keyword, a
/// macro ("linux", "I", "errno"), a name that the headers use, or another parameter's, with underscores behind it. So
/// an output "n_extent" and an extent "n" of an input "n" are told apart. One that begins as functions do, "m_forward"
/// of a model "m", is "the_m_forward".
class ParameterNames {
public:
  ParameterNames(const ModelInterface &model, const EntryInterface &entry);

  const std::string &argument(size_t index) const { return arguments[index]; }
  /// "tokens", or "tokens_extent" beside an argument "tokens".
  const std::string &extent(const Symbol &symbol) const { return extents.at(symbol.name); }
  /// A Dim as a C expression over those names.
  std::string expression(const Dim &dim) const;

private:
  std::vector<std::string> arguments;
  std::map<std::string, std::string> extents;
};

/// The method for the entry in the classes of NAME.hpp: its name, with underscores behind it where that is taken, or
/// "run_" before it where it begins as functions do.
std::string methodName(const ModelInterface &model, const EntryInterface &entry);

/// Entries with more tensors have a struct of arguments, too.
inline constexpr size_t maxPlainTensors = 8;
inline bool hasArgumentStruct(const EntryInterface &entry) { return entry.arguments.size() > maxPlainTensors; }

} // namespace kiln
