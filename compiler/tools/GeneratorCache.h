// SPDX-License-Identifier: Apache-2.0
//
// What compiling left, kept for the next time: a spec's generator, and the headers of the language in the form that the
// C++ compiler precompiles them to. A file is found again as long as the command, the compiler and the contents of all
// files that were read are the same. It knows nothing of LLVM, as the command `kiln` does not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// A command, as a shell splits it into words: CXX="ccache g++".
std::vector<std::string> splitWords(const std::string &text);

/// The folder that compiled kernels are in, too: KILN_CACHE_DIR, XDG_CACHE_HOME/kiln or HOME/.cache/kiln; empty where
/// none of these is set.
std::filesystem::path defaultCacheFolder();

/// A word as a shell wants it.
std::string quoteFlag(const std::string &word);

/// The program that a name stands for, with no link left; empty if there is none.
std::filesystem::path findProgram(const std::string &name);

/// In a cache's folder: where generators and precompiled headers are.
std::filesystem::path generatorsFolder(const std::filesystem::path &cache);

class CompiledFile {
public:
  /// `cache`: its folder; empty: nothing is kept or found. `suffix`: of the file's name. `command`: the words that
  /// make it, the first ones those of the compiler, without names of temporary files. `most`: how many files of that
  /// suffix are kept; those used least recently go.
  CompiledFile(const std::filesystem::path &cache, std::string suffix, const std::vector<std::string> &command,
               std::size_t most);

  /// The file, if it is there and nothing that it was made of has changed.
  std::optional<std::filesystem::path> find() const;

  /// Moves a file that was just made to the cache. `rule`: what the compiler's -MD wrote. Not where one of the files
  /// that it names was changed after `begin`, when compiling began: it may have been read before. Where it is then, if
  /// there.
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
