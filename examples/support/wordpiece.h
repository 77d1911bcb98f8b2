// SPDX-License-Identifier: Apache-2.0
//
// BERT's WordPiece (Devlin et al. 2018): text is cleaned and split at spaces and punctuation. Of each word the longest
// prefix that is a token is taken, then that of the rest, whose tokens are marked as continuations.
#pragma once

#include "tokenizer.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace support {

class WordPiece {
public:
  struct Options {
    bool cleans = true;        // drops control characters, unifies spaces
    bool parts_chinese = true; // each Chinese character is a word
    bool strips_accents = true;
    bool lowers = true;
    std::string inner = "##";  // prefix of tokens that do not begin a word
    Token unknown = 0;         // for a word that tokens cannot form
    std::size_t longest = 100; // longer words (in characters) are unknown
  };

  WordPiece(std::unordered_map<std::string, Token> tokens, Options options)
      : tokens(std::move(tokens)), options(std::move(options)) {}

  /// Appends the tokens of a text.
  void encode(std::string_view text, std::vector<Token> &out) const;

private:
  void encode_word(const std::vector<std::string> &characters, std::vector<Token> &out) const;

  std::unordered_map<std::string, Token> tokens;
  Options options;
};

} // namespace support
