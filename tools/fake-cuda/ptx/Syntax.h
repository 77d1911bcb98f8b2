// SPDX-License-Identifier: Apache-2.0
//
// The syntax tree of a module: variables, and functions as trees of statements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "Type.h"

namespace kiln::ptx {

enum class Space : unsigned char { generic, global, shared, local, param, constant };

namespace syntax {

struct Operand {
  enum class Form {
    name,    ///< a register or a variable, with `offset`
    integer, ///< `bits`
    f32,     ///< its `bits`
    f64,
    address, ///< [name + offset] or [offset]; `parts` are the coordinates of a tensor
    list,    ///< {a, b} or (a, b)
    pair     ///< a | b
  };
  Form form = Form::integer;
  bool negated = false;
  std::string name;
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::vector<Operand> parts;
};

struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::none;
  unsigned line = 0;
  unsigned alignment = 1;
  std::uint64_t size = 0;
  bool external = false;
  std::vector<std::byte> initial; ///< if shorter than `size`, zeros follow
};

struct Registers {
  Type type;
  std::string name;
  unsigned count = 0; ///< for %r<count>; 0: a single register
};

struct Statement {
  enum class Kind { instruction, label, block, registers, variable, targets };
  Kind kind = Kind::instruction;
  unsigned line = 0;
  std::string text; ///< the text of an instruction, the name of a label

  std::string guard; ///< the predicate register; empty: none
  bool guardNegated = false;
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<Operand> operands;

  std::vector<Statement> body;
  std::vector<Registers> registers;
  std::vector<Variable> variables;
  std::vector<std::string> targets; ///< for .branchtargets, whose label is `text`
};

struct Function {
  std::string name;
  unsigned line = 0;
  bool entry = false;
  bool declaration = false;
  std::vector<Variable> results, parameters;
  std::vector<Statement> body;
  std::array<unsigned, 3> maxThreads{}; ///< by .maxntid or .reqntid; 0: unspecified
  bool exactThreads = false;
  std::array<unsigned, 3> cluster{}; ///< of .reqnctapercluster
};

struct Module {
  std::string version, target;
  std::vector<Variable> variables;
  std::map<std::string, Function, std::less<>> functions;
  std::vector<std::string> order; ///< the names of the functions, in order
};

/// Throws SyntaxFault.
Module parseModule(std::string_view text);

} // namespace syntax
} // namespace kiln::ptx
