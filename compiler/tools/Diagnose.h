// SPDX-License-Identifier: Apache-2.0
//
// From a C++ compiler's output for a spec to its first mistake in one line of the user's own: "spec.cpp:14: error:
// block.down: linear: wrong input width; expected 768, got 512 [linear_c1]". g++ and clang put such a mistake at the
// end of an instantiation that begins in the language's headers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::diagnose {

/// A user's file, with its text.
struct Source {
  std::string path; // as it is to be printed
  std::vector<std::string> lines;
};

/// A spec and those of its headers that are not the language's, by their `#include "..."`.
std::vector<Source> readSources(const std::filesystem::path &spec, const std::vector<std::string> &includeFolders);

/// The first mistake that the output tells, "FILE:LINE: error: TEXT"; nothing if the output has no error.
std::optional<std::string> findMistake(std::string_view output, const std::vector<Source> &sources);

/// What is wrong with a spec that compiles and is no generator, "FILE:LINE: error: TEXT", unless KILN_MODEL is in it.
std::optional<std::string> findMissingModel(const std::vector<Source> &sources);

/// Runs a compiler on a spec. Of its output, a failure shows the mistake first and the rest only if it is verbose, or
/// if no mistake was found. Returns its exit status, or 127 if it could not be started. `spec` is the file among its
/// words, `hint` says how to see the rest.
int compile(std::vector<std::string> words, const std::string &spec, bool isVerbose, const std::string &hint);

} // namespace kiln::diagnose
