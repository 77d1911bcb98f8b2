// SPDX-License-Identifier: Apache-2.0
//
// The output of g++ or clang as diagnostics: each error with what stands around it.
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

/// A line of the output that names a place: a note, or a step of an instantiation.
struct Remark {
  Place place;
  std::string text;
};

struct Error {
  Remark said;
  std::vector<Remark>
      around; // the instantiation and the notes, innermost first: g++ has it before the error, clang after
};

std::vector<Error> readErrors(std::string_view output);

/// Whether a file is the user's: not of the language's headers, nor of the compiler or its libraries.
bool isUsers(const std::string &file);

/// The language's text of an error.
struct LanguageText {
  std::string text;
  bool
      isComputed; // from `Message<42>{"..."}` (g++, clang 22) or `Spelled<'a', 'b'>` (clang before 22), not written out
};

/// Nothing if the error is C++'s own.
std::optional<LanguageText> findLanguageText(const Error &error);

/// C++'s own text, with tensors as the language writes them, "f32[batch, 64]", and without the lists of template
/// arguments at its end.
std::string shorten(std::string text);

} // namespace kiln::diagnose
