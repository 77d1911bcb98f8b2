// SPDX-License-Identifier: Apache-2.0
//
// A cache of compilation results: a spec's generator, and the language's headers as the C++ compiler precompiles them.
// A file is found again as long as the command, the compiler and the contents of all files that were read are the same.
// It does not depend on LLVM, as the command `kiln` does not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// Splits a command into words as a shell does: CXX="ccache g++".
std::vector<std::string> splitWords(const std::string &text);

/// Returns the folder that also holds compiled kernels: KILN_CACHE_DIR, XDG_CACHE_HOME/kiln or HOME/.cache/kiln; empty
/// if none of these is set.
std::filesystem::path defaultCacheFolder();

/// Quotes a word for a shell.
std::string quoteFlag(const std::string &word);

/// Returns the path of the program that a name refers to, with all links resolved; empty if there is none.
std::filesystem::path findProgram(const std::string &name);

/// Returns the folder of generators and precompiled headers in a cache's folder.
std::filesystem::path generatorsFolder(const std::filesystem::path &cache);

class CompiledFile {
public:
  /// `cache` is the cache's folder; if it is empty, nothing is kept or found. `suffix` is the suffix of the file's
  /// name. `command` has the words of the command that creates the file, beginning with the compiler, without names of
  /// temporary files. `most` is how many files of that suffix are kept; the least recently used ones are removed.
  CompiledFile(const std::filesystem::path &cache, std::string suffix, const std::vector<std::string> &command,
               std::size_t most);

  /// Returns the file if it exists and none of its inputs has changed.
  std::optional<std::filesystem::path> find() const;

  /// Moves a new file to the cache and returns its path there. `rule` is the output of the compiler's -MD. Returns
  /// nothing if a file in it was changed after `begin`, when compilation began, since the compiler may have read the
  /// old content.
  std::optional<std::filesystem::path> keep(const std::filesystem::path &file, const std::filesystem::path &rule,
                                            std::filesystem::file_time_type begin) const;

private:
  std::filesystem::path pathOf(const std::vector<std::string> &read) const;
  std::filesystem::path listPath() const { return folder / (key + ".read"); }
  void trim() const;

  std::filesystem::path folder;
  std::string suffix, key;
  std::size_t most;
};

} // namespace kiln
