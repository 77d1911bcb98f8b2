// SPDX-License-Identifier: Apache-2.0
//
// Decodes syntax to executable instructions. Called functions are inlined.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "Instruction.h"
#include "Syntax.h"

namespace kiln::ptx {

/// Addresses of the module's variables: only those in shared memory are known before the module is loaded.
struct ModuleLayout {
  std::map<const syntax::Variable *, std::uint32_t> shared;
  std::map<std::string, const syntax::Variable *, std::less<>> variables;
  std::uint32_t staticShared = 0;
};
/// Throws SyntaxFault.
ModuleLayout layoutOf(const syntax::Module &module);

/// An instruction that is being decoded: its modifiers are taken one by one, its operands added in the order that its
/// handler expects. Modifiers that are left are an error.
class Decoding;
using DecodeFunction = void (*)(Decoding &);
struct Opcode {
  std::string_view name;
  DecodeFunction decode;
};

struct Symbol {
  enum class Kind { registerName, registerRange, variable, label, targets };
  Kind kind = Kind::label;
  Type type = Type::none; ///< of registers
  unsigned count = 0;     ///< of a range
  Operand reg;            ///< set on first use
  Space space = Space::generic;
  std::uint64_t address = 0; ///< of a variable, within its space
  std::string global;        ///< name of a device-memory variable
  std::uint64_t size = 0;
  std::uint32_t label = 0;
  std::vector<std::string> targets; ///< of .branchtargets
};

class Decoder {
public:
  Decoder(const syntax::Module &module, const ModuleLayout &layout) : module(module), layout(layout) {}
  Program run(const syntax::Function &entry);

private:
  friend class Decoding;
  /// A function that is being decoded.
  struct Frame {
    const syntax::Function *function;
    std::vector<std::map<std::string, Symbol, std::less<>>> scopes;
    std::uint32_t end; ///< label after its end
    bool inner;        ///< called, not launched
  };

  void decodeBody(const std::vector<syntax::Statement> &body);
  void declare(const syntax::Statement &statement);
  void declareVariable(const syntax::Variable &variable);
  void decode(const syntax::Statement &statement);
  void call(const syntax::Statement &statement);
  void bind(Frame &callee, const std::vector<syntax::Variable> &formal, const syntax::Operand &actual);
  void placeLabels();

  Symbol &lookUp(std::string_view name);
  Symbol *find(std::string_view name);
  Operand newRegister(const std::string &name, Type type);
  Operand scratch(unsigned bits);
  Operand constant(std::uint64_t bits, unsigned width, const std::string &variable = "");
  bool special(std::string_view name, Operand &operand);
  std::uint32_t newLabel();
  std::uint32_t allocateLocal(std::uint64_t size, unsigned alignment);

  const syntax::Module &module;
  const ModuleLayout &layout;
  Program program;
  std::vector<Frame> frames;
  std::vector<std::uint32_t> labels; ///< index of the instruction
  struct Waiting {                   ///< operands of an instruction
    std::size_t first;
    std::uint32_t count;
    bool branches; ///< whether the target is a label
    bool targets;  ///< whether the operands after the first are labels
  };
  std::vector<Waiting> waiting; ///< of each instruction
  std::map<std::tuple<std::uint64_t, unsigned, std::string>, Operand> constants;
  std::map<std::string, Operand, std::less<>> specials;
  std::map<unsigned, Operand> scratches;
};

class Decoding {
public:
  Decoding(Decoder &decoder, const syntax::Statement &statement);

  const syntax::Statement &statement;
  Instruction out;

  /// Takes a modifier if it is present.
  bool take(std::string_view modifier);
  /// Takes the first of these modifiers that is present; returns an empty text if none is.
  std::string_view takeOneOf(std::initializer_list<std::string_view> modifiers);
  /// Takes the first modifier that is a type.
  Type takeType();
  bool hasType() const;
  /// Returns the modifiers that are not yet taken.
  std::vector<std::string> &modifiers() { return left; }

  std::size_t operands() const { return statement.operands.size(); }
  const syntax::Operand &operand(std::size_t i) const;
  void expectOperands(std::size_t least, std::size_t most = 0) const;
  /// Returns the elements of a list, or the operand itself.
  std::span<const syntax::Operand> parts(std::size_t i, std::size_t count) const;

  /// Adds a register as wide as the type, a constant, or an address.
  void source(const syntax::Operand &operand, Type type);
  void target(const syntax::Operand &operand, Type type);
  /// Adds a register that is at least as wide.
  void wideSource(const syntax::Operand &operand, Type type);
  void wideTarget(const syntax::Operand &operand, Type type);
  void predicateSource(const syntax::Operand &operand);
  void predicateTarget(const syntax::Operand &operand);
  /// "_": an unused result.
  static const syntax::Operand &nowhere();
  /// Adds a result and, after a bar, a predicate: "%r1|%p1"; without the bar the predicate is unused.
  void targetAndPredicate(const syntax::Operand &operand, Type type);
  /// Adds the base of [name + offset]; sets out.offset. May change `space` to that of the variable.
  void address(const syntax::Operand &operand);
  void label(const syntax::Operand &operand);
  void targets(const syntax::Operand &operand);

  /// Emits the instruction. All modifiers must be taken.
  void emit(Handler handler);
  /// Emits an instruction with a result and `sources` operands of one type. A null handler means that the opcode does
  /// not support the type.
  void emitUniform(Type type, unsigned sources, Handler handler);
  [[noreturn]] void fail(const std::string &words) const;
  /// Fails because the instruction does not support this type.
  [[noreturn]] void failType(Type type) const;
  void add(const Operand &operand) { made.push_back(operand); }
  void clearOperands() { made.clear(); }
  const Operand &added(std::size_t i) const { return made[i]; }
  const syntax::Module &module() const;
  /// Records that the kernel has a griddepcontrol.wait.
  void noteWait();
  /// Whether the code is in a called function.
  bool inner() const;
  std::uint32_t endLabel() const;
  void branchTo(std::uint32_t label);

private:
  Operand registerOf(const syntax::Operand &operand, const char *what) const;
  Operand literal(const syntax::Operand &operand, Type type) const;

  Decoder &decoder;
  std::vector<std::string> left;
  std::vector<Operand> made;
  bool branches = false, hasTargets = false;
};

/// The parts of instructions that are shared by integers and floating-point types.
std::span<const Opcode> integerArithmetic();
std::span<const Opcode> floatArithmetic();
/// The opcodes of each file.
std::span<const Opcode> integerOpcodes();
std::span<const Opcode> bitOpcodes();
std::span<const Opcode> floatOpcodes();
std::span<const Opcode> approximationOpcodes();
std::span<const Opcode> moveOpcodes();
std::span<const Opcode> compareOpcodes();
std::span<const Opcode> convertOpcodes();
std::span<const Opcode> loadStoreOpcodes();
std::span<const Opcode> atomicOpcodes();
std::span<const Opcode> controlOpcodes();
std::span<const Opcode> warpOpcodes();
std::span<const Opcode> barrierOpcodes();
std::span<const Opcode> copyOpcodes();
std::span<const Opcode> mbarrierOpcodes();
std::span<const Opcode> wgmmaOpcodes();
/// Decodes cp.async.bulk, after CopyAsync.cpp has taken the name.
void decodeBulkCopy(Decoding &decoding);
std::span<const Opcode> matrixOpcodes();

} // namespace kiln::ptx
