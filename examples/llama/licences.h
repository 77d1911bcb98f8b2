// SPDX-License-Identifier: Apache-2.0
//
// A fine-tuning text that every Debian has: the licences of /usr/share/common-licenses.
#pragma once

#include "support/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace llama {

/// Returns one paragraph per line, with single spaces.
inline std::string read_paragraphs(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::string text, line, word;
  bool isBetween = true; // between two paragraphs
  while (std::getline(file, line)) {
    std::istringstream words(line);
    bool isEmpty = true;
    for (; words >> word; isEmpty = isBetween = false)
      text += (text.empty() ? "" : isBetween ? "\n" : " ") + word;
    isBetween |= isEmpty;
  }
  return text;
}

/// Returns the texts of a folder, by their names, as tokens between the begin and end tokens.
inline std::map<std::string, std::vector<support::Token>>
read_licences(const std::string &folder, const support::Tokenizer &tokenizer, support::Token end) {
  std::map<std::string, std::vector<support::Token>> licences;
  if (std::filesystem::is_directory(folder))
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_symlink() || !entry.is_regular_file())
        continue; // a link to another licence
      std::vector<support::Token> tokens = tokenizer.before();
      for (support::Token token : tokenizer.encode(read_paragraphs(entry.path()), support::Specials::text))
        tokens.push_back(token);
      tokens.push_back(end);
      licences[entry.path().filename().string()] = std::move(tokens);
    }
  return licences;
}

} // namespace llama
