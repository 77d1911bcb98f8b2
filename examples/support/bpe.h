// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding (Sennrich et al. 2016): a word begins as its bytes or characters. Of all adjacent pairs that are
// in the table of merges, the pair with the lowest rank becomes one token, the leftmost of equal ones first, until no
// pair is in the table.
#pragma once

#include "tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace support {

/// The initial units of words.
enum class Unit { byte, character };

class Bpe {
public:
  struct Merge {
    Token left, right, result;
  };
  struct Options {
    Unit unit = Unit::byte;
    std::vector<Token> bytes;       // the token of each of the 256 bytes, for units without a token; or empty
    Token unknown = -1;             // for units without a token, if there are no byte tokens
    bool joins_unknown = false;     // adjacent unknown units share one token
    bool takes_whole_words = false; // a word that is a token needs no merges
    std::string end_of_word;        // appended to a word's last unit (CLIP)
  };

  /// `tokens` are the units and the results of merges; the first merge has the lowest rank.
  Bpe(std::unordered_map<std::string, Token> tokens, const std::vector<Merge> &merges, Options options);

  /// Appends the tokens of a word, in time n log n for n bytes.
  void encode(std::string_view word, std::vector<Token> &out) const;

private:
  struct Ranked {
    std::uint32_t rank;
    Token result;
  };
  struct Symbol {
    Token token;
    std::uint32_t previous, next; // positions of the adjacent symbols
  };
  struct Candidate;

  std::vector<Symbol> units_of(std::string_view word) const;
  void merge(std::vector<Symbol> &symbols) const;
  const Ranked *find(Token left, Token right) const;

  std::unordered_map<std::string, Token> tokens;
  std::unordered_map<std::uint64_t, Ranked> merges;
  Options options;
};

} // namespace support
