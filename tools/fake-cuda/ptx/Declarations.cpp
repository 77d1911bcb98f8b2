// SPDX-License-Identifier: Apache-2.0
//
// The directives of a module, the signatures of its functions, its variables.
#include <cstring>
#include <fmt/format.h>

#include "Fault.h"
#include "Parser.h"

namespace kiln::ptx::syntax {

void Parser::fail(const std::string &words) const { throw SyntaxFault(peek().line, words); }
void Parser::failAtToken(const std::string &wanted) const {
  fail(fmt::format("expected {}, got \"{}\"", wanted, peek().text));
}

bool Parser::takeIf(char punctuation) {
  if (!peek().is(punctuation))
    return false;
  take();
  return true;
}

bool Parser::takeIfDotted(std::string_view word) {
  if (!peek().isDotted(word))
    return false;
  take();
  return true;
}

void Parser::expect(char punctuation) {
  if (!takeIf(punctuation))
    failAtToken(fmt::format("\"{}\"", punctuation));
}

std::string Parser::takeName() {
  if (peek().kind != Token::Kind::name)
    failAtToken("a name");
  return std::string(take().text);
}

std::uint64_t Parser::takeCount() {
  const Operand number = parseNumber(false);
  if (number.form != Operand::Form::integer)
    fail("expected an integer");
  return number.bits;
}

std::string Parser::textSince(std::size_t first) const {
  std::string text;
  for (std::size_t i = first; i < at; ++i) {
    if (i != first && !tokens[i].joined)
      text += ' ';
    if (tokens[i].kind == Token::Kind::dotted)
      text += '.';
    text += tokens[i].text;
  }
  return text;
}

Module Parser::run() {
  Module module;
  while (peek().kind != Token::Kind::end)
    parseDirective(module);
  if (module.version.empty())
    fail("the module has no .version");
  if (module.target.empty())
    fail("the module has no .target");
  return module;
}

void Parser::parseDirective(Module &module) {
  if (takeIfDotted("version")) {
    module.version = std::string(take().text);
  } else if (takeIfDotted("target")) {
    module.target = takeName();
    while (takeIf(','))
      takeName();
  } else if (takeIfDotted("address_size")) {
    if (takeCount() != 64)
      fail("addresses of 64 bits are required");
  } else if (takeIfDotted("file")) {
    const unsigned line = peek().line;
    while (peek().line == line && peek().kind != Token::Kind::end)
      take();
  } else if (takeIfDotted("section")) {
    skipSection();
  } else if (takeIfDotted("pragma")) {
    take();
    expect(';');
  } else {
    parseLinked(module);
  }
}

/// Skips debug information.
void Parser::skipSection() {
  while (!peek().is('{') && peek().kind != Token::Kind::end)
    take();
  while (!peek().is('}') && peek().kind != Token::Kind::end)
    take();
  expect('}');
}

/// Parses functions and variables, with their linkage.
void Parser::parseLinked(Module &module) {
  bool external = false;
  for (;;) {
    if (takeIfDotted("extern"))
      external = true;
    else if (!takeIfDotted("visible") && !takeIfDotted("weak") && !takeIfDotted("common"))
      break;
  }
  if (takeIfDotted("entry"))
    return parseFunction(module, true);
  if (takeIfDotted("func"))
    return parseFunction(module, false);
  Space space;
  if (takeIfDotted("global"))
    space = Space::global;
  else if (takeIfDotted("const"))
    space = Space::constant;
  else if (takeIfDotted("shared"))
    space = Space::shared;
  else
    fail(fmt::format("unknown directive \"{}{}\"", peek().kind == Token::Kind::dotted ? "." : "", peek().text));
  for (Variable &variable : parseVariables(space, external))
    module.variables.push_back(std::move(variable));
  expect(';');
}

std::vector<Variable> Parser::parseVariables(Space space, bool external) {
  std::vector<Variable> variables;
  Variable common;
  common.space = space;
  common.external = external;
  unsigned width = 1;
  while (peek().kind == Token::Kind::dotted) {
    if (takeIfDotted("align")) {
      common.alignment = static_cast<unsigned>(takeCount());
    } else if (takeIfDotted("ptr")) { // the pointee
      while (peek().isDotted("global") || peek().isDotted("shared") || peek().isDotted("const") ||
             peek().isDotted("local") || peek().isDotted("align"))
        if (take().text == "align")
          takeCount();
    } else if (takeIfDotted("v2")) {
      width = 2;
    } else if (takeIfDotted("v4")) {
      width = 4;
    } else if (typeOf(peek().text) != Type::none) {
      common.type = typeOf(take().text);
    } else {
      fail(fmt::format("unknown attribute \".{}\" of a variable", peek().text));
    }
  }
  if (common.type == Type::none || common.type == Type::pred)
    fail("a variable has no type of memory");
  do {
    Variable variable = common;
    variable.line = peek().line;
    variable.name = takeName();
    std::uint64_t count = width;
    while (takeIf('[')) {
      count *= peek().is(']') ? 0 : takeCount();
      expect(']');
    }
    variable.size = count * bytesOf(common.type);
    variable.alignment = std::max(variable.alignment, bytesOf(common.type) * width);
    if (takeIf('='))
      parseInitial(variable);
    variables.push_back(std::move(variable));
  } while (space != Space::param && takeIf(','));
  return variables;
}

/// Braces only group: the elements are consecutive.
void Parser::parseInitial(Variable &variable) {
  const unsigned size = bytesOf(variable.type);
  unsigned depth = 0;
  do {
    if (takeIf('{')) {
      ++depth;
      continue;
    }
    if (takeIf('}')) {
      --depth;
      continue;
    }
    if (takeIf(','))
      continue;
    const bool negative = takeIf('-');
    if (peek().kind != Token::Kind::number)
      fail(fmt::format("the initial value \"{}\" of {} is not modelled: only numbers are", peek().text, variable.name));
    Operand number = parseNumber(negative);
    if (number.form == Operand::Form::f64 && variable.type == Type::f32) {
      const float narrow = static_cast<float>(std::bit_cast<double>(number.bits));
      number.bits = std::bit_cast<std::uint32_t>(narrow);
    }
    const std::size_t end = variable.initial.size();
    variable.initial.resize(end + size);
    std::memcpy(variable.initial.data() + end, &number.bits, std::min(size, 8U));
  } while (depth > 0);
  if (variable.initial.size() > variable.size)
    fail(fmt::format("{} has more initial values than elements", variable.name));
}

std::vector<Variable> Parser::parseParameters() {
  std::vector<Variable> parameters;
  expect('(');
  while (!takeIf(')')) {
    if (!takeIfDotted("param"))
      failAtToken("\".param\"");
    parameters.push_back(std::move(parseVariables(Space::param, false).front()));
    if (!peek().is(')'))
      expect(',');
  }
  return parameters;
}

std::array<unsigned, 3> Parser::parseThree() {
  std::array<unsigned, 3> values{1, 1, 1};
  for (unsigned i = 0; i < 3; ++i) {
    values[i] = static_cast<unsigned>(takeCount());
    if (!takeIf(','))
      break;
  }
  return values;
}

void Parser::parseLimits(Function &function) {
  for (;;) {
    if (takeIfDotted("maxntid")) {
      function.maxThreads = parseThree();
    } else if (takeIfDotted("reqntid")) {
      function.maxThreads = parseThree();
      function.exactThreads = true;
    } else if (takeIfDotted("reqnctapercluster")) {
      function.cluster = parseThree();
    } else if (takeIfDotted("minnctapersm") || takeIfDotted("maxnreg") || takeIfDotted("maxclusterrank")) {
      takeCount();
    } else if (takeIfDotted("pragma")) {
      take();
      expect(';');
    } else if (!takeIfDotted("explicitcluster") && !takeIfDotted("noreturn")) {
      return;
    }
  }
}

void Parser::parseFunction(Module &module, bool entry) {
  Function function;
  function.entry = entry;
  function.line = peek().line;
  if (!entry && peek().is('('))
    function.results = parseParameters();
  function.name = takeName();
  if (peek().is('('))
    function.parameters = parseParameters();
  parseLimits(function);
  if (takeIf(';')) {
    function.declaration = true;
  } else {
    expect('{');
    function.body = parseBlock();
  }
  const auto known = module.functions.find(function.name);
  if (known != module.functions.end()) {
    if (!known->second.declaration && !function.declaration)
      throw SyntaxFault(function.line, fmt::format("function {} is defined twice", function.name));
    if (!function.declaration)
      known->second = std::move(function);
    return;
  }
  module.order.push_back(function.name);
  module.functions.emplace(function.name, std::move(function));
}

Module parseModule(std::string_view text) { return Parser(text).run(); }

} // namespace kiln::ptx::syntax
