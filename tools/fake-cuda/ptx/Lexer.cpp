// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a PTX text.
#include "Lexer.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "Fault.h"

namespace kiln::ptx {
namespace {

bool continuesName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
bool startsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }
bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Lexer {
public:
  explicit Lexer(std::string_view source) : source(source) {}

  std::vector<Token> run() {
    for (;;) {
      skip();
      if (at == source.size())
        break;
      tokens.push_back(one());
      tokens.back().joined = tokens.size() > 1 && !skipped;
    }
    tokens.push_back({Token::Kind::end, "end of text", line});
    return std::move(tokens);
  }

private:
  char peek(std::size_t ahead = 0) const { return at + ahead < source.size() ? source[at + ahead] : '\0'; }

  /// Skips blanks and comments.
  void skip() {
    const std::size_t before = at;
    for (; at < source.size(); ++at) {
      if (source[at] == '\n')
        ++line;
      else if (peek() == '/' && peek(1) == '/')
        at = std::min(source.find('\n', at), source.size()) - 1;
      else if (peek() == '/' && peek(1) == '*')
        skipLongComment();
      else if (!std::isspace(static_cast<unsigned char>(source[at])))
        break;
    }
    skipped = at != before;
  }

  /// Leaves `at` on the last character of the comment.
  void skipLongComment() {
    const std::size_t close = source.find("*/", at + 2);
    if (close == std::string_view::npos)
      throw SyntaxFault(line, "a comment has no end");
    for (; at < close + 1; ++at)
      line += source[at] == '\n';
  }

  Token one() {
    const std::size_t first = at;
    const char c = source[at++];
    if (startsName(c)) {
      while (continuesName(peek()))
        ++at;
      return {Token::Kind::name, source.substr(first, at - first), line};
    }
    if (isDigit(c)) {
      while (continuesName(peek()) || (peek() == '.' && isDigit(peek(1))))
        ++at;
      return {Token::Kind::number, source.substr(first, at - first), line};
    }
    if (c == '.' && continuesName(peek())) {
      while (continuesName(peek()) || (peek() == ':' && (peek(1) == ':' || source[at - 1] == ':')))
        ++at;
      return {Token::Kind::dotted, source.substr(first + 1, at - first - 1), line};
    }
    if (c == '"') {
      const std::size_t close = source.find('"', at);
      if (close == std::string_view::npos)
        throw SyntaxFault(line, "a string has no end");
      at = close + 1;
      return {Token::Kind::text, source.substr(first + 1, close - first - 1), line};
    }
    if (std::string_view(",;:{}[]()<>@!|+-=").find(c) == std::string_view::npos)
      throw SyntaxFault(line, fmt::format("unexpected character \"{}\"", c));
    return {Token::Kind::punctuation, source.substr(first, 1), line};
  }

  std::string_view source;
  std::size_t at = 0;
  unsigned line = 1;
  bool skipped = false;
  std::vector<Token> tokens;
};

} // namespace

std::vector<Token> tokensOf(std::string_view source) { return Lexer(source).run(); }

} // namespace kiln::ptx
