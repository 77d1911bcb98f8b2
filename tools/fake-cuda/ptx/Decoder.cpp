// SPDX-License-Identifier: Apache-2.0
//
// Decodes function bodies to a program: scopes, calls, labels.
#include "Decoder.h"

#include <algorithm>
#include <fmt/format.h>

#include "Fault.h"

namespace kiln::ptx {
namespace {

using syntax::Statement;

const std::map<std::string_view, DecodeFunction> &opcodes() {
  static const std::map<std::string_view, DecodeFunction> table = [] {
    std::map<std::string_view, DecodeFunction> made;
    for (const auto &part :
         {integerOpcodes(), bitOpcodes(), floatOpcodes(), approximationOpcodes(), moveOpcodes(), compareOpcodes(),
          convertOpcodes(), loadStoreOpcodes(), atomicOpcodes(), controlOpcodes(), warpOpcodes(), barrierOpcodes(),
          copyOpcodes(), matrixOpcodes(), mbarrierOpcodes(), wgmmaOpcodes()})
      for (const Opcode &opcode : part)
        made.emplace(opcode.name, opcode.decode);
    return made;
  }();
  return table;
}

void collectShared(const std::vector<Statement> &body, std::vector<const syntax::Variable *> &variables) {
  for (const Statement &statement : body) {
    collectShared(statement.body, variables);
    for (const syntax::Variable &variable : statement.variables)
      if (variable.space == Space::shared)
        variables.push_back(&variable);
  }
}

std::uint32_t alignedTo(std::uint64_t value, unsigned alignment) {
  return static_cast<std::uint32_t>((value + alignment - 1) / alignment * alignment);
}

} // namespace

ModuleLayout layoutOf(const syntax::Module &module) {
  ModuleLayout layout;
  std::vector<const syntax::Variable *> variables, dynamic;
  for (const syntax::Variable &variable : module.variables) {
    layout.variables[variable.name] = &variable;
    if (variable.space == Space::shared)
      variables.push_back(&variable);
  }
  for (const auto &[name, function] : module.functions)
    collectShared(function.body, variables);
  unsigned alignment = 16;
  for (const syntax::Variable *variable : variables) {
    if (variable->external) {
      dynamic.push_back(variable);
      alignment = std::max(alignment, variable->alignment);
      continue;
    }
    layout.staticShared = alignedTo(layout.staticShared, variable->alignment);
    layout.shared[variable] = sharedBase + layout.staticShared;
    layout.staticShared += static_cast<std::uint32_t>(variable->size);
  }
  // All dynamic variables share the memory after the static variables.
  if (!dynamic.empty())
    layout.staticShared = alignedTo(layout.staticShared, alignment);
  for (const syntax::Variable *variable : dynamic)
    layout.shared[variable] = sharedBase + layout.staticShared;
  return layout;
}

Program Decoder::run(const syntax::Function &entry) {
  program.staticShared = layout.staticShared;
  program.sharedStart = layout.shared.empty() ? 0 : sharedBase;
  Frame frame{&entry, {{}}, newLabel(), false};
  std::uint64_t offset = 0;
  for (const syntax::Variable &parameter : entry.parameters) {
    offset = alignedTo(offset, parameter.alignment);
    Symbol symbol;
    symbol.kind = Symbol::Kind::variable;
    symbol.space = Space::param;
    symbol.address = offset;
    symbol.size = parameter.size;
    frame.scopes[0][parameter.name] = symbol;
    offset += parameter.size;
  }
  frames.push_back(std::move(frame));
  decodeBody(entry.body);
  labels[frames.back().end] = static_cast<std::uint32_t>(program.code.size());
  Statement exit;
  exit.opcode = exit.text = "exit";
  exit.line = program.code.empty() ? entry.line : program.code.back().line;
  decode(exit);
  placeLabels();
  return std::move(program);
}

void Decoder::placeLabels() {
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    Instruction &instruction = program.code[i];
    const Waiting &of = waiting[i];
    instruction.operands = program.operands.data() + of.first;
    instruction.count = of.count;
    if (of.branches)
      instruction.target = labels[instruction.target];
    if (of.targets)
      for (std::uint32_t k = 1; k < of.count; ++k)
        program.operands[of.first + k].row = labels[program.operands[of.first + k].row];
  }
}

void Decoder::decodeBody(const std::vector<Statement> &body) {
  for (const Statement &statement : body)
    declare(statement);
  for (const Statement &statement : body) {
    switch (statement.kind) {
    case Statement::Kind::block:
      frames.back().scopes.emplace_back();
      decodeBody(statement.body);
      frames.back().scopes.pop_back();
      break;
    case Statement::Kind::label:
      labels[lookUp(statement.text).label] = static_cast<std::uint32_t>(program.code.size());
      break;
    case Statement::Kind::instruction:
      try {
        statement.opcode == "call" ? call(statement) : decode(statement);
      } catch (const SyntaxFault &fault) {
        if (fault.line)
          throw;
        throw SyntaxFault(statement.line, fmt::format("\"{}\": {}", statement.text, fault.what()));
      }
      break;
    default:
      break;
    }
  }
}

void Decoder::declare(const Statement &statement) {
  auto &scope = frames.back().scopes.back();
  Symbol symbol;
  switch (statement.kind) {
  case Statement::Kind::registers:
    for (const syntax::Registers &registers : statement.registers) {
      symbol.kind = registers.count ? Symbol::Kind::registerRange : Symbol::Kind::registerName;
      symbol.type = registers.type;
      symbol.count = registers.count;
      // A register range is stored under its prefix and a mark that no name has.
      scope[registers.count ? registers.name + "<" : registers.name] = symbol;
    }
    break;
  case Statement::Kind::label:
    if (scope.contains(statement.text))
      throw SyntaxFault(statement.line, fmt::format("label {} is defined twice", statement.text));
    symbol.label = newLabel();
    scope[statement.text] = symbol;
    break;
  case Statement::Kind::targets:
    symbol.kind = Symbol::Kind::targets;
    symbol.targets = statement.targets;
    scope[statement.text] = symbol;
    break;
  case Statement::Kind::variable:
    for (const syntax::Variable &variable : statement.variables)
      declareVariable(variable);
    break;
  default:
    break;
  }
}

void Decoder::declareVariable(const syntax::Variable &variable) {
  Symbol symbol;
  symbol.kind = Symbol::Kind::variable;
  symbol.size = variable.size;
  if (variable.space == Space::shared) {
    symbol.space = Space::shared;
    symbol.address = layout.shared.at(&variable);
  } else { // call parameters are in the thread's local memory
    symbol.space = Space::local;
    symbol.address = allocateLocal(variable.size, variable.alignment);
  }
  frames.back().scopes.back()[variable.name] = symbol;
}

std::uint32_t Decoder::allocateLocal(std::uint64_t size, unsigned alignment) {
  const std::uint32_t at = alignedTo(program.localBytes, alignment);
  program.localBytes = at + static_cast<std::uint32_t>(size);
  return localBase + at;
}

void Decoder::decode(const Statement &statement) {
  const auto found = opcodes().find(statement.opcode);
  if (found == opcodes().end())
    throw SyntaxFault(0, fmt::format("unknown instruction {}", statement.opcode));
  Decoding decoding(*this, statement);
  found->second(decoding);
}

/// call (result), function, (argument, ...): inlines the function's body; its parameters are the caller's variables.
void Decoder::call(const Statement &statement) {
  if (!statement.guard.empty())
    throw SyntaxFault(0, "a call under a predicate is not modelled");
  const auto name = std::find_if(statement.operands.begin(), statement.operands.end(),
                                 [](const auto &o) { return o.form == syntax::Operand::Form::name; });
  if (name == statement.operands.end())
    throw SyntaxFault(0, "a call names a function");
  const auto found = module.functions.find(name->name);
  if (found == module.functions.end())
    throw SyntaxFault(0, fmt::format("calls {}, which is no function of the module: calls through a pointer are not "
                                     "modelled",
                                     name->name));
  const syntax::Function &callee = found->second;
  if (callee.declaration)
    throw SyntaxFault(0, fmt::format("calls {}, which the module declares and does not have", callee.name));
  for (const Frame &frame : frames)
    if (frame.function == &callee)
      throw SyntaxFault(0, fmt::format("function {} calls itself, which is not modelled", callee.name));
  Frame frame{&callee, {{}}, newLabel(), true};
  const syntax::Operand none{syntax::Operand::Form::list, false, "", 0, 0, {}};
  bind(frame, callee.results, name == statement.operands.begin() ? none : statement.operands.front());
  bind(frame, callee.parameters, std::next(name) == statement.operands.end() ? none : *std::next(name));
  frames.push_back(std::move(frame));
  decodeBody(callee.body);
  labels[frames.back().end] = static_cast<std::uint32_t>(program.code.size());
  frames.pop_back();
}

void Decoder::bind(Frame &callee, const std::vector<syntax::Variable> &formal, const syntax::Operand &actual) {
  if (formal.size() != actual.parts.size())
    throw SyntaxFault(0, fmt::format("function {} has {} parameters or results, the call {}", callee.function->name,
                                     formal.size(), actual.parts.size()));
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const Symbol &symbol = lookUp(actual.parts[i].name);
    if (symbol.kind != Symbol::Kind::variable || symbol.size != formal[i].size)
      throw SyntaxFault(
          0, fmt::format("argument \"{}\" is no variable of {} bytes", actual.parts[i].name, formal[i].size));
    callee.scopes[0][formal[i].name] = symbol;
  }
}

std::uint32_t Decoder::newLabel() {
  labels.push_back(0);
  return static_cast<std::uint32_t>(labels.size() - 1);
}

} // namespace kiln::ptx
