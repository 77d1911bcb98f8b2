// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "require.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace kiln_fuzz {

/// Returns the words of a command line, one per line, or nothing if a word names a file outside of the current folder,
/// which the command might write.
inline std::optional<std::vector<std::string>> wordsOf(std::string program, const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  if (text.find('/') != text.npos || text.find('\0') != text.npos)
    return std::nullopt;
  std::vector<std::string> words = {std::move(program)};
  while (!text.empty()) {
    words.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(words.back().size() + 1, text.size()));
  }
  return words;
}

/// Returns the arguments for main, followed by null.
inline std::vector<char *> argumentsOf(std::vector<std::string> &words) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

/// Changes to a folder that is then deleted: nothing is in it, and nothing can be written there.
inline void enterNoFolder() {
  char folder[] = "/tmp/kiln-fuzz-XXXXXX";
  require(mkdtemp(folder) && chdir(folder) == 0 && rmdir(folder) == 0, "a temporary folder");
}

} // namespace kiln_fuzz
