// SPDX-License-Identifier: Apache-2.0
//
// Parses the output of g++ or clang as diagnostics: each error with its related lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::diagnose {

struct Place {
  std::string file;
  int line = 0;
};

/// A line of the output with a source location: a note, or a step of an instantiation.
struct Remark {
  Place place;
  std::string text;
};

struct Error {
  Remark said;
  /// The instantiation and the notes, innermost first. g++ prints them before the error, clang after it.
  std::vector<Remark> around;
};

std::vector<Error> readErrors(std::string_view output);

/// Whether a file is the user's, rather than one of the language's headers, the compiler or its libraries.
bool isUsers(const std::string &file);

/// Returns the DSL's text in an error, or nothing if the error is C++'s own. The text is written out, or comes from
/// `Message<42>{"..."}` (g++ before C++26) or `Spelled<'a', 'b'>` (clang before 20).
std::optional<std::string> findLanguageText(const Error &error);

/// Shortens C++'s own text: tensors are written as in the DSL, "f32[batch, 64]", and trailing lists of template
/// arguments are removed.
std::string shorten(std::string text);

} // namespace kiln::diagnose
