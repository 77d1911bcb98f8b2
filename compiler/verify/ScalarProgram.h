// SPDX-License-Identifier: Apache-2.0
//
// The region of a linalg.generic as a list of steps on registers: f32 arithmetic as a target computes it, without
// fusing, and integers of 8 and 32 bits that wrap. The index of a look-up is clamped to the tensor, as in the Halide
// target.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/interpreter/Tensor.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kiln::verify {

using interpreter::Tensor;

/// A scalar: an f32, which holds shorter floats, too, or an integer of type index or with its sign extended. i1 is 0 or
/// 1.
union Cell {
  std::int64_t integer = 0;
  float number;
};

/// Converts an element of a tensor to a scalar, and a scalar to a number.
Cell toCell(const Tensor &tensor, std::int64_t flat);
double toNumber(Cell cell, bool isFloating);

/// Returns the value of an arith.constant of a scalar type.
Cell cellOf(mlir::TypedAttr value);

/// Evaluates one op of arith or math on scalars. Throws std::runtime_error for others.
Cell evaluateScalar(mlir::Operation *op, llvm::ArrayRef<Cell> operands);

/// Callbacks for the values that a region uses from outside.
struct Outside {
  llvm::function_ref<Cell(mlir::Value)> scalar;
  llvm::function_ref<const Tensor &(mlir::Value)> tensor;
};

class ScalarProgram {
public:
  /// Throws std::runtime_error for an op that has no scalar meaning here.
  ScalarProgram(mlir::linalg::GenericOp op, const Outside &outside);

  /// The block's arguments are in registers 0, 1, ...; setLoop() sets the registers that hold the index of a loop.
  Cell *arguments() { return registers.data(); }
  void setLoop(unsigned loop, std::int64_t index) {
    for (unsigned reader : loopRegisters[loop])
      registers[reader].integer = index;
  }
  void run();
  Cell yielded(unsigned number) const { return registers[results[number]]; }

  using Function = Cell (*)(Cell, Cell, Cell);

private:
  struct Step {
    Function function = nullptr; // null: a look-up
    const Tensor *table = nullptr;
    std::vector<unsigned> indices;
    unsigned result = 0, operands[3] = {0, 0, 0};
    unsigned unused = 0; // bits of a Cell above the integer's
  };

  unsigned registerOf(mlir::Value value, const Outside &outside);
  void addStep(mlir::Operation &op, const Outside &outside);

  mlir::Block *block;
  llvm::DenseMap<mlir::Value, unsigned> known;
  std::vector<Cell> registers;
  std::vector<Step> steps;
  std::vector<unsigned> results;
  std::vector<std::vector<unsigned>> loopRegisters;
};

} // namespace kiln::verify
