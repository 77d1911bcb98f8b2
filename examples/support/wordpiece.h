// SPDX-License-Identifier: Apache-2.0
//
// WordPiece as BERT has it (Devlin et al. 2018): a text is cleaned and cut at spaces and punctuation, and of each word
// the longest beginning that is a token is taken, then that of the rest, whose tokens are marked as such.
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
    bool cleans = true;        // control characters go, each kind of space is one
    bool parts_chinese = true; // each Chinese character is a word
    bool strips_accents = true;
    bool lowers = true;
    std::string inner = "##";  // of tokens that do not begin a word
    Token unknown = 0;         // for a word that is not made of tokens
    std::size_t longest = 100; // characters of a word that is looked at
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
