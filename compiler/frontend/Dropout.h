// SPDX-License-Identifier: Apache-2.0
//
// Dropout in entries that train: each has a stream of random numbers of its own, and in loops one for each iteration.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace kiln {

class DropoutImporter {
public:
  explicit DropoutImporter(mlir::OpBuilder &builder) : builder(builder) {}

  /// Of an entry, whose inputs `seed` and `step` it takes if they are there.
  void begin(mlir::func::FuncOp function);
  mlir::Value import(mlir::Value x, double probability, mlir::Location location);
  /// 0, 1, ...
  mlir::Value numbers(std::int64_t count, mlir::Location location);

  /// While the body of a loop is imported: `number`, if there is one, is that of the loop's iteration.
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
