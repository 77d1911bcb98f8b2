// SPDX-License-Identifier: Apache-2.0
//
// Finds the first mistake of a spec in a C++ compiler's output and describes it in one line with the user's location:
// "spec.cpp:14: error: block.down: linear: wrong input width; expected 768, got 512 [linear_c1]". g++ and clang report
// such a mistake at the end of an instantiation that begins in the language's headers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::diagnose {

/// A user's file and its text.
struct Source {
  std::string path; // the path to print
  std::vector<std::string> lines;
};

/// Reads a spec and those of its `#include "..."` headers that are not the language's.
std::vector<Source> readSources(const std::filesystem::path &spec, const std::vector<std::string> &includeFolders);

/// Returns the folders of the -I and -iquote flags among the words of a command.
std::vector<std::string> includeFolders(const std::vector<std::string> &words);

/// Returns the first mistake in the output, "FILE:LINE: error: TEXT", or nothing if the output has no error.
std::optional<std::string> findMistake(std::string_view output, const std::vector<Source> &sources);

/// Returns the error of a spec that compiles but is no generator, "FILE:LINE: error: TEXT", unless it contains
/// KILN_MODEL.
std::optional<std::string> findMissingModel(const std::vector<Source> &sources);

/// Runs a compiler on a spec. If it fails, prints the mistake first, and the rest of the output only if `isVerbose` or
/// if no mistake was found. Returns the compiler's exit status, or 127 if it could not be started. `spec` is the file
/// among `words`; `hint` says how to see the rest.
int compile(std::vector<std::string> words, const std::string &spec, bool isVerbose, const std::string &hint);

} // namespace kiln::diagnose
