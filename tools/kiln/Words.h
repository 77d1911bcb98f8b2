// SPDX-License-Identifier: Apache-2.0
//
// Functions for words in the texts of compilers and specs.
#pragma once

#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kiln::diagnose {

inline bool isLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

inline bool containsOne(std::string_view text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    if (contains(text, part))
      return true;
  return false;
}

/// Returns the position of the word in the text where it is not part of a longer word; npos if there is none.
inline std::size_t findWord(std::string_view text, std::string_view word, std::size_t from = 0) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !isLetter(text[at - 1])) && (end == text.size() || !isLetter(text[end])))
      return at;
  }
  return std::string_view::npos;
}
inline bool containsWord(std::string_view text, std::string_view word) {
  return findWord(text, word) != std::string_view::npos;
}

inline void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

} // namespace kiln::diagnose
