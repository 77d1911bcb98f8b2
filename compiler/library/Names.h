// SPDX-License-Identifier: Apache-2.0
//
// Maps the names of a model to names of C and C++: of functions, parameters, macros and files. Only this file decides
// which names a header can have, and what it calls a parameter whose own name is taken.
#pragma once

#include "compiler/library/Interface.h"
#include "compiler/object/Object.h"

#include "llvm/Support/Error.h"
#include <map>

namespace kiln {

/// The suffix of the function that returns the bytes of an entry's arena, NAME_<entry>_arena_bytes.
inline constexpr const char *arenaBytesSuffix = "_arena_bytes";

/// Returns what is wrong with a model's name, or an empty string.
std::string checkModelName(const std::string &name);

/// Returns the name with an underscore for each character that identifiers do not have: the name of a gradient contains
/// that of a weight, which may have any printable characters.
std::string asIdentifier(std::string name);

/// Checks that the names that the headers and the archive define are distinct, and that they are no keyword, macro or
/// declaration of the standard headers. `runtime` has the members of the runtime, whose functions get the model's
/// prefix too.
llvm::Error checkNames(const ModelInterface &model, llvm::ArrayRef<ObjectFile> runtime);

/// The parameter names of an entry in the generated headers. A parameter keeps its own name unless that is a keyword, a
/// macro ("linux", "I", "errno"), a name that the headers use, or the name of another parameter: then underscores are
/// appended. So an output "n_extent" and the extent "n" of an input "n" are distinct. A name with the prefix of
/// functions, such as "m_forward" of a model "m", becomes "the_m_forward".
class ParameterNames {
public:
  ParameterNames(const ModelInterface &model, const EntryInterface &entry);

  const std::string &argument(size_t index) const { return arguments[index]; }
  /// Returns "tokens", or "tokens_extent" if there is an argument "tokens".
  const std::string &extent(const Symbol &symbol) const { return extents.at(symbol.name); }
  /// Returns a Dim as a C expression over those names.
  std::string expression(const Dim &dim) const;

private:
  std::vector<std::string> arguments;
  std::map<std::string, std::string> extents;
};

/// Returns the name of an entry's method in the classes of NAME.hpp: its own name, with underscores appended if that is
/// taken, or with "run_" prepended if it has the prefix of functions.
std::string methodName(const ModelInterface &model, const EntryInterface &entry);

/// Entries with more tensors also have a struct of arguments.
inline constexpr size_t maxPlainTensors = 8;
inline bool hasArgumentStruct(const EntryInterface &entry) { return entry.arguments.size() > maxPlainTensors; }

} // namespace kiln
