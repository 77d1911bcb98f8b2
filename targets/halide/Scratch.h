// SPDX-License-Identifier: Apache-2.0
//
// Upper bounds of the heap memory that a worker of a lowered pipeline holds at a time.
#pragma once

#include "Halide.h"
#include "compiler/dialect/Extents.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::halide {

/// Runs as the last lowering pass and changes nothing. The bound holds for every value of the index arguments within
/// their bounds, which the parameters have from here on (Translator gives no upper ones), with each allocation rounded
/// as the runtime's stack allocator does. A task of a parallel loop may run on the worker that started the loop, so its
/// bytes count on top of what that worker holds.
class ScratchBound : public Halide::Internal::IRMutator {
public:
  ScratchBound(std::vector<Halide::Expr> symbols, llvm::ArrayRef<mlir::kiln::Interval> bounds)
      : symbols(std::move(symbols)), bounds(bounds) {}

  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &stmt) override;

  int64_t bytes = 0;     // of the worker that runs the pipeline
  int64_t taskBytes = 0; // of each other one: what a task of a parallel loop holds
  std::string unbounded; // the allocation that has no bound; empty if there is none

private:
  std::vector<Halide::Expr> symbols;
  llvm::SmallVector<mlir::kiln::Interval> bounds;
};

} // namespace kiln::halide
