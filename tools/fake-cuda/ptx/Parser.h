// SPDX-License-Identifier: Apache-2.0
//
// The parser. Statements.cpp parses function bodies, Declarations.cpp everything around them.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "Lexer.h"
#include "Syntax.h"

namespace kiln::ptx::syntax {

class Parser {
public:
  explicit Parser(std::string_view text) : tokens(tokensOf(text)) {}
  Module run();

private:
  const Token &peek(std::size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  const Token &take() { return tokens[at + 1 < tokens.size() ? at++ : at]; }
  bool takeIf(char punctuation);
  bool takeIfDotted(std::string_view word);
  void expect(char punctuation);
  std::string takeName();
  std::uint64_t takeCount();
  [[noreturn]] void fail(const std::string &words) const;
  [[noreturn]] void failAtToken(const std::string &wanted) const;
  /// Returns the text from token `first` to the one before the current token, with single blanks.
  std::string textSince(std::size_t first) const;

  // Declarations.cpp
  void parseDirective(Module &module);
  void parseLinked(Module &module);
  void parseFunction(Module &module, bool entry);
  void parseLimits(Function &function);
  std::array<unsigned, 3> parseThree();
  std::vector<Variable> parseParameters();
  /// Parses what follows the space: .align 4 .b8 name[16] = {...}, and more names; without the semicolon.
  std::vector<Variable> parseVariables(Space space, bool external);
  void parseInitial(Variable &variable);
  void skipSection();

  // Statements.cpp
  std::vector<Statement> parseBlock();
  bool parseStatementDirective(std::vector<Statement> &statements);
  Statement parseRegisters();
  Statement parseInstruction();
  Operand parseOperand();
  Operand parsePrimary();
  Operand parseNumber(bool negative);
  Operand parseAddress();
  Operand parseList(char close);

  std::vector<Token> tokens;
  std::size_t at = 0;
};

} // namespace kiln::ptx::syntax
