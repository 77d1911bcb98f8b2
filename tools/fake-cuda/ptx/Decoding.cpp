// SPDX-License-Identifier: Apache-2.0
//
// The modifiers and operands of one instruction.
#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "Decoder.h"
#include "Fault.h"

namespace kiln::ptx {

using Form = syntax::Operand::Form;

Decoding::Decoding(Decoder &decoder, const syntax::Statement &statement)
    : statement(statement), decoder(decoder), left(statement.modifiers) {
  out.line = statement.line;
  if (statement.guard.empty())
    return;
  syntax::Operand guard;
  guard.form = Form::name;
  guard.name = statement.guard;
  const Operand predicate = registerOf(guard, "predicate");
  if (predicate.bits != 1)
    fail("the guard is no predicate");
  out.guard = predicate.number;
  out.guardNegated = statement.guardNegated;
}

void Decoding::fail(const std::string &words) const { throw SyntaxFault(0, words); }
void Decoding::failType(Type type) const {
  fail(fmt::format("{} of type {} is not modelled", statement.opcode, nameOf(type)));
}

bool Decoding::take(std::string_view modifier) {
  const auto found = std::find(left.begin(), left.end(), modifier);
  if (found == left.end())
    return false;
  left.erase(found);
  return true;
}

std::string_view Decoding::takeOneOf(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers)
    if (take(modifier))
      return modifier;
  return {};
}

bool Decoding::hasType() const {
  return std::any_of(left.begin(), left.end(), [](const std::string &m) { return typeOf(m) != Type::none; });
}

Type Decoding::takeType() {
  for (auto it = left.begin(); it != left.end(); ++it)
    if (const Type type = typeOf(*it); type != Type::none) {
      left.erase(it);
      return type;
    }
  fail("the instruction has no type");
}

const syntax::Operand &Decoding::operand(std::size_t i) const {
  if (i >= statement.operands.size())
    fail(fmt::format("operand {} is missing", i + 1));
  return statement.operands[i];
}

void Decoding::expectOperands(std::size_t least, std::size_t most) const {
  if (operands() < least || operands() > std::max(least, most))
    fail(fmt::format("{} operands are required, got {}", least, operands()));
}

std::span<const syntax::Operand> Decoding::parts(std::size_t i, std::size_t count) const {
  const syntax::Operand &of = operand(i);
  const auto found = of.form == Form::list ? std::span(of.parts) : std::span(&of, 1);
  if (found.size() != count)
    fail(fmt::format("operand {} has {} elements, {} are required", i + 1, found.size(), count));
  return found;
}

Operand Decoding::registerOf(const syntax::Operand &operand, const char *what) const {
  Operand special;
  if (operand.form == Form::name && decoder.special(operand.name, special))
    return special;
  if (operand.form != Form::name)
    fail(fmt::format("a {} is a register", what));
  Symbol &symbol = decoder.lookUp(operand.name);
  if (symbol.kind != Symbol::Kind::registerName)
    fail(fmt::format("\"{}\" is no register", operand.name));
  if (symbol.reg.number < 0)
    symbol.reg = decoder.newRegister(operand.name, symbol.type);
  Operand found = symbol.reg;
  found.negated = operand.negated;
  return found;
}

Operand Decoding::literal(const syntax::Operand &operand, Type type) const {
  std::uint64_t bits = operand.bits;
  if (operand.form == Form::integer) {
    if (type == Type::f32 || type == Type::f64)
      fail("a floating-point operand is an integer");
  } else if (operand.form == Form::f32 && type == Type::f64) {
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else if (operand.form == Form::f64 && bitsOf(type) == 32) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  }
  return decoder.constant(bits, std::max(bitsOf(type), 16U));
}

void Decoding::wideSource(const syntax::Operand &operand, Type type) {
  if (operand.form == Form::integer || operand.form == Form::f32 || operand.form == Form::f64) {
    made.push_back(literal(operand, type));
    return;
  }
  Operand special;
  if (operand.form == Form::name && !decoder.special(operand.name, special)) {
    const Symbol &symbol = decoder.lookUp(operand.name);
    if (symbol.kind == Symbol::Kind::variable) {
      made.push_back(decoder.constant(symbol.address + static_cast<std::uint64_t>(operand.offset),
                                      std::max(bitsOf(type), 32U), symbol.global));
      return;
    }
  }
  const Operand found = registerOf(operand, "source");
  if (found.bits < bitsOf(type) || found.bits == 1)
    fail(fmt::format("register {} of {} bits is too narrow for {}", operand.name, found.bits, nameOf(type)));
  made.push_back(found);
}

void Decoding::source(const syntax::Operand &operand, Type type) {
  wideSource(operand, type);
  if (made.back().bits != std::max(bitsOf(type), 16U))
    fail(fmt::format("operand \"{}\" has {} bits, {} has {}", operand.name, made.back().bits, nameOf(type),
                     bitsOf(type)));
}

void Decoding::wideTarget(const syntax::Operand &operand, Type type) {
  if (operand.form == Form::name && operand.name == "_") {
    made.push_back(decoder.scratch(std::max(bitsOf(type), 16U)));
    return;
  }
  const Operand found = registerOf(operand, "result");
  if (found.bits < bitsOf(type) || found.bits == 1)
    fail(fmt::format("register {} of {} bits is too narrow for {}", operand.name, found.bits, nameOf(type)));
  if (operand.name.find('.') != std::string::npos)
    fail(fmt::format("{} is not written by programs", operand.name));
  made.push_back(found);
}

void Decoding::target(const syntax::Operand &operand, Type type) {
  wideTarget(operand, type);
  if (made.back().bits != std::max(bitsOf(type), 16U))
    fail(fmt::format("register {} has {} bits, {} has {}", operand.name, made.back().bits, nameOf(type), bitsOf(type)));
}

void Decoding::predicateSource(const syntax::Operand &operand) {
  if (operand.form == Form::integer) {
    made.push_back(decoder.constant(operand.bits != 0, 32));
    made.back().negated = operand.negated;
    return;
  }
  made.push_back(registerOf(operand, "predicate"));
  if (made.back().bits != 1)
    fail(fmt::format("\"{}\" is no predicate", operand.name));
}

void Decoding::predicateTarget(const syntax::Operand &operand) {
  if (operand.form == Form::name && operand.name == "_") {
    made.push_back(decoder.scratch(1));
    return;
  }
  predicateSource(operand);
  if (made.back().number < 0)
    fail("a result is a register");
}

void Decoding::address(const syntax::Operand &operand) {
  if (operand.form != Form::address)
    fail("an address in brackets is required");
  out.offset = 0;
  if (operand.name.empty()) {
    made.push_back(decoder.constant(static_cast<std::uint64_t>(operand.offset), 64));
    return;
  }
  const Symbol &symbol = decoder.lookUp(operand.name);
  out.offset = operand.offset;
  if (symbol.kind == Symbol::Kind::variable) {
    // Parameters of a called function are in the thread's local memory.
    if (out.space == Space::param || out.space == Space::generic)
      out.space = symbol.space;
    if (out.space != symbol.space)
      fail(fmt::format("variable {} is in another space", operand.name));
    made.push_back(decoder.constant(symbol.address, 64, symbol.global));
    return;
  }
  syntax::Operand name = operand;
  name.form = Form::name;
  made.push_back(registerOf(name, "base of an address"));
  if (made.back().bits < 32)
    fail(fmt::format("register {} of {} bits is no address", operand.name, made.back().bits));
}

void Decoding::label(const syntax::Operand &operand) {
  const Symbol &symbol = decoder.lookUp(operand.name);
  if (symbol.kind != Symbol::Kind::label)
    fail(fmt::format("\"{}\" is no label", operand.name));
  branchTo(symbol.label);
}

void Decoding::branchTo(std::uint32_t label) {
  out.target = label;
  branches = true;
}

void Decoding::targets(const syntax::Operand &operand) {
  const Symbol symbol = decoder.lookUp(operand.name);
  if (symbol.kind != Symbol::Kind::targets)
    fail(fmt::format("\"{}\" is no list of labels", operand.name));
  for (const std::string &name : symbol.targets) {
    Operand target;
    target.row = decoder.lookUp(name).label;
    made.push_back(target);
  }
  hasTargets = true;
}

const syntax::Operand &Decoding::nowhere() {
  static const syntax::Operand operand = [] {
    syntax::Operand made;
    made.form = Form::name;
    made.name = "_";
    return made;
  }();
  return operand;
}

void Decoding::targetAndPredicate(const syntax::Operand &operand, Type type) {
  const bool both = operand.form == Form::pair;
  target(both ? operand.parts[0] : operand, type);
  predicateTarget(both ? operand.parts[1] : nowhere());
}

void Decoding::emitUniform(Type type, unsigned sources, Handler handler) {
  if (!handler)
    failType(type);
  expectOperands(sources + 1);
  target(operand(0), type);
  for (unsigned i = 1; i <= sources; ++i)
    source(operand(i), type);
  emit(handler);
}

void Decoding::emit(Handler handler) {
  if (!left.empty())
    fail(fmt::format("modifier .{} is not modelled", left.front()));
  out.handler = handler;
  decoder.waiting.push_back(
      {decoder.program.operands.size(), static_cast<std::uint32_t>(made.size()), branches, hasTargets});
  decoder.program.operands.insert(decoder.program.operands.end(), made.begin(), made.end());
  decoder.program.code.push_back(out);
  decoder.program.texts.push_back(statement.text);
}

const syntax::Module &Decoding::module() const { return decoder.module; }
bool Decoding::inner() const { return decoder.frames.back().inner; }
void Decoding::noteWait() { decoder.program.waits = true; }
std::uint32_t Decoding::endLabel() const { return decoder.frames.back().end; }

} // namespace kiln::ptx
