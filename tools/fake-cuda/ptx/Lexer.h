// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a PTX text. Comments are dropped.
#pragma once

#include <string_view>
#include <vector>

namespace kiln::ptx {

struct Token {
  enum class Kind {
    name,        ///< add, %r1, $L__BB0_2, smem, %tid.x
    dotted,      ///< .reg, .b32, .shared::cluster, without the dot
    number,      ///< 12, 0x1F, 0f3F800000, 1.5
    text,        ///< a string, without its quotes
    punctuation, ///< one character
    end
  };
  Kind kind;
  std::string_view text;
  unsigned line;
  /// Whether no blank precedes this token.
  bool joined = false;

  bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
  bool isDotted(std::string_view word) const { return kind == Kind::dotted && text == word; }
};

/// Returns the tokens, of which the last is `end`. The texts are parts of `source`. Throws SyntaxFault.
std::vector<Token> tokensOf(std::string_view source);

} // namespace kiln::ptx
