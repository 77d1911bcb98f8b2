// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the expressions of a lowered statement lane by lane for the memory checker.
#pragma once

#include "targets/halide/check/MemoryModel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>

namespace kiln::halide {

class LaneEvaluator {
public:
  /// The current binding of a name: a value, memory, or both.
  struct Name {
    Lanes value;
    bool isBound = false;
    MemoryView view;
  };

  LaneEvaluator(MemoryModel &memory, uint64_t seed, int64_t stepLimit) : memory(memory), seed(seed), left(stepLimit) {}

  /// Evaluates an expression. Loads are checked even if their value is not used, since the generated code performs
  /// them. Throws Halide's InternalError for an unknown node.
  Lanes evaluate(const Halide::Expr &e);
  /// Evaluates a scalar on which control flow or a size depends; `use` describes it in messages.
  int64_t scalar(const Halide::Expr &e, const char *use);

  /// Returns the binding of a name; `node` is a key that saves looking up the text again.
  Name &name(const void *node, const std::string &text);
  Name &name(const std::string &text);
  /// Returns the memory of a buffer.
  const MemoryView &view(const void *node, const std::string &text);
  /// Evaluates the index of a load or store, and checks it except for its bounds.
  Lanes index(const Halide::Expr &e, const Halide::Internal::ModulusRemainder &alignment, const std::string &use,
              const Lanes *predicate);
  /// Returns the lanes that are active; nothing if all of them are.
  std::optional<Lanes> predicate(const Halide::Expr &e, const std::string &use);

  void takeSteps(int64_t count) {
    if ((left -= count) < 0)
      throw StepsExceeded();
  }

private:
  [[noreturn]] static void unknownNode(const Halide::Expr &e);
  Lanes load(const Halide::Internal::Load &op);
  Lanes call(const Halide::Internal::Call &op);
  Lanes saturatingCast(Halide::Type type, const Halide::Expr &value);
  Lanes bufferField(const Halide::Internal::Call &op);
  Lanes cast(Halide::Type type, const Halide::Expr &value);
  Lanes reinterpret(Halide::Type type, const Halide::Expr &value);
  Lanes binary(IntegerOp op, Halide::Type type, const Halide::Expr &a, const Halide::Expr &b);
  Lanes ramp(const Halide::Internal::Ramp &op);
  Lanes shuffle(const Halide::Internal::Shuffle &op);
  Lanes reduce(const Halide::Internal::VectorReduce &op);
  Lanes variable(const Halide::Internal::Variable &op);
  Lanes let(const Halide::Internal::Let &op);
  Lanes choice(const Halide::Internal::Select &op);
  /// Draws values of the type at random, for lanes that are computed from `from`.
  Lanes draw(Halide::Type type, const Lanes &from);
  bool drawBool() { return drawInteger(Halide::UInt(8), seed, drawn++) != 0; }

  MemoryModel &memory;
  uint64_t seed, drawn = 0;
  int64_t left;
  llvm::DenseMap<const void *, Name *> nodes;
  llvm::StringMap<std::unique_ptr<Name>> names;
};

} // namespace kiln::halide
