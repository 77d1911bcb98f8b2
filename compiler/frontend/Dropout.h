// SPDX-License-Identifier: Apache-2.0
//
// Imports dropout in entries that train. Each dropout has a separate random stream, and in loops one for each
// iteration.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace kiln {

class DropoutImporter {
public:
  explicit DropoutImporter(mlir::OpBuilder &builder) : builder(builder) {}

  /// Begins an entry. Its inputs `seed` and `step` are used if they exist.
  void begin(mlir::func::FuncOp function);
  mlir::Value import(mlir::Value x, double probability, mlir::Location location);
  /// Returns the constant 0, 1, ..., `count` - 1.
  mlir::Value numbers(std::int64_t count, mlir::Location location);

  /// Is alive while the body of a loop is imported. `number`, if any, is the number of the loop's iteration.
  class Iteration {
  public:
    Iteration(DropoutImporter &importer, mlir::kiln::LoopInterface loop, mlir::ValueRange number);
    ~Iteration() { importer.iteration = outer; }
    Iteration(const Iteration &) = delete;
    Iteration &operator=(const Iteration &) = delete;

  private:
    DropoutImporter &importer;
    mlir::Value outer;
  };

private:
  mlir::OpBuilder &builder;
  mlir::Value seed, step, iteration;
  std::int64_t streams = 0;
};

} // namespace kiln
