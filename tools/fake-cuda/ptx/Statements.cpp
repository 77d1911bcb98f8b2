// SPDX-License-Identifier: Apache-2.0
//
// Parses function bodies: blocks, labels, registers, instructions and their operands.
#include <bit>
#include <charconv>
#include <fmt/format.h>

#include "Fault.h"
#include "Parser.h"

namespace kiln::ptx::syntax {

/// Parses what follows the opening brace; takes the closing one.
std::vector<Statement> Parser::parseBlock() {
  std::vector<Statement> statements;
  while (!takeIf('}')) {
    if (peek().kind == Token::Kind::end)
      fail("a function has no end");
    if (takeIf(';'))
      continue;
    if (parseStatementDirective(statements))
      continue;
    Statement statement;
    statement.line = peek().line;
    if (takeIf('{')) {
      statement.kind = Statement::Kind::block;
      statement.body = parseBlock();
    } else if (peek().kind == Token::Kind::name && peek(1).is(':')) {
      statement.kind = Statement::Kind::label;
      statement.text = takeName();
      expect(':');
      if (takeIfDotted("branchtargets")) {
        statement.kind = Statement::Kind::targets;
        do
          statement.targets.push_back(takeName());
        while (takeIf(','));
        expect(';');
      } else if (peek().isDotted("callprototype")) {
        fail("calls through a pointer are not modelled");
      }
    } else {
      statement = parseInstruction();
    }
    statements.push_back(std::move(statement));
  }
  return statements;
}

bool Parser::parseStatementDirective(std::vector<Statement> &statements) {
  if (peek().kind != Token::Kind::dotted)
    return false;
  if (takeIfDotted("loc")) {
    const unsigned line = peek().line;
    while (peek().line == line)
      take();
    return true;
  }
  if (takeIfDotted("pragma")) {
    take();
    expect(';');
    return true;
  }
  Statement statement;
  statement.line = peek().line;
  if (takeIfDotted("reg")) {
    statements.push_back(parseRegisters());
    return true;
  }
  Space space;
  if (takeIfDotted("local"))
    space = Space::local;
  else if (takeIfDotted("shared"))
    space = Space::shared;
  else if (takeIfDotted("param"))
    space = Space::param;
  else
    fail(fmt::format("unknown directive \".{}\"", peek().text));
  statement.kind = Statement::Kind::variable;
  statement.variables = parseVariables(space, false);
  expect(';');
  statements.push_back(std::move(statement));
  return true;
}

Statement Parser::parseRegisters() {
  Statement statement;
  statement.kind = Statement::Kind::registers;
  statement.line = peek().line;
  if (peek().kind != Token::Kind::dotted || typeOf(peek().text) == Type::none)
    failAtToken("a type of registers");
  const Type type = typeOf(take().text);
  do {
    Registers registers{type, takeName()};
    if (takeIf('<')) {
      registers.count = static_cast<unsigned>(takeCount());
      expect('>');
    }
    statement.registers.push_back(std::move(registers));
  } while (takeIf(','));
  expect(';');
  return statement;
}

Statement Parser::parseInstruction() {
  Statement statement;
  statement.line = peek().line;
  const std::size_t first = at;
  if (takeIf('@')) {
    statement.guardNegated = takeIf('!');
    statement.guard = takeName();
  }
  if (peek().kind != Token::Kind::name)
    failAtToken("an instruction");
  statement.opcode = takeName();
  while (peek().kind == Token::Kind::dotted)
    statement.modifiers.emplace_back(take().text);
  if (!peek().is(';')) {
    do
      statement.operands.push_back(parseOperand());
    while (takeIf(','));
  }
  expect(';');
  --at;
  statement.text = textSince(first);
  ++at;
  // A wgmma has a hundred register operands.
  if (statement.text.size() > 100)
    statement.text = statement.text.substr(0, 97) + "...";
  return statement;
}

Operand Parser::parseOperand() {
  Operand operand = parsePrimary();
  if (!takeIf('|'))
    return operand;
  Operand pair;
  pair.form = Operand::Form::pair;
  pair.parts.push_back(std::move(operand));
  pair.parts.push_back(parsePrimary());
  return pair;
}

Operand Parser::parsePrimary() {
  if (takeIf('['))
    return parseAddress();
  if (takeIf('{'))
    return parseList('}');
  if (takeIf('('))
    return parseList(')');
  if (takeIf('!')) {
    Operand operand = parsePrimary();
    operand.negated = !operand.negated;
    return operand;
  }
  if (takeIf('-'))
    return parseNumber(true);
  if (peek().kind == Token::Kind::number)
    return parseNumber(false);
  Operand operand;
  operand.form = Operand::Form::name;
  operand.name = takeName();
  if (peek().kind == Token::Kind::dotted && peek().joined) // %tid.x
    operand.name += "." + std::string(take().text);
  if (peek().is('+') || peek().is('-')) {
    const bool negative = take().is('-') != takeIf('-');
    operand.offset = static_cast<std::int64_t>(parseNumber(negative).bits);
  }
  return operand;
}

Operand Parser::parseNumber(bool negative) {
  if (peek().kind != Token::Kind::number)
    failAtToken("a number");
  std::string_view text = take().text;
  Operand number;
  const auto read = [&](std::string_view digits, int base) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number.bits, base);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail(fmt::format("\"{}\" is no number", text));
  };
  const char kind = text.size() > 1 && text[0] == '0' ? text[1] : ' ';
  if (kind == 'f' || kind == 'F') {
    number.form = Operand::Form::f32;
    read(text.substr(2), 16);
    number.bits ^= negative ? 0x80000000U : 0;
    return number;
  }
  if (kind == 'd' || kind == 'D') {
    number.form = Operand::Form::f64;
    read(text.substr(2), 16);
    number.bits ^= static_cast<std::uint64_t>(negative) << 63;
    return number;
  }
  if (text.find('.') != std::string_view::npos) {
    number.form = Operand::Form::f64;
    const double value = std::stod(std::string(text));
    number.bits = std::bit_cast<std::uint64_t>(negative ? -value : value);
    return number;
  }
  if (text.back() == 'U')
    text.remove_suffix(1);
  if (kind == 'x' || kind == 'X')
    read(text.substr(2), 16);
  else if (kind == 'b' || kind == 'B')
    read(text.substr(2), 2);
  else
    read(text, kind == ' ' ? 10 : 8);
  if (negative)
    number.bits = 0 - number.bits;
  return number;
}

/// [name], [name+4], [4], [name, {x, y}].
Operand Parser::parseAddress() {
  Operand address = parsePrimary();
  if (address.form == Operand::Form::integer)
    address.offset = static_cast<std::int64_t>(address.bits);
  else if (address.form != Operand::Form::name)
    fail("an address is a name or a number");
  address.form = Operand::Form::address;
  if (takeIf(',')) {
    expect('{');
    address.parts = parseList('}').parts;
  }
  expect(']');
  return address;
}

Operand Parser::parseList(char close) {
  Operand list;
  list.form = Operand::Form::list;
  while (!takeIf(close)) {
    list.parts.push_back(parseOperand());
    if (!peek().is(close))
      expect(',');
  }
  return list;
}

} // namespace kiln::ptx::syntax
