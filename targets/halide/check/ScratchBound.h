// SPDX-License-Identifier: Apache-2.0
//
// Computes upper bounds of the heap memory that a worker holds at a time in a lowered pipeline.
#pragma once

#include "compiler/dialect/Extents.h"
#include "targets/halide/Compat.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::halide {

/// Runs as the last lowering pass and does not change the statement. The bound holds for every value of the index
/// arguments within their bounds, which this pass sets on the parameters (Translator sets no upper ones), with each
/// allocation rounded as the runtime's stack allocator does. A task of a parallel loop may run on the worker that
/// started the loop, so its bytes count on top of what that worker holds.
class ScratchBound : public Halide::Internal::IRMutator {
public:
  ScratchBound(std::vector<Halide::Expr> symbols, llvm::ArrayRef<mlir::kiln::Interval> bounds)
      : symbols(std::move(symbols)), bounds(bounds) {}

  using IRMutator::mutate;
  Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &stmt) override;

  int64_t bytes = 0;     // bytes of the worker that runs the pipeline
  int64_t taskBytes = 0; // bytes of each other worker, which runs a task of a parallel loop
  std::string unbounded; // the allocation that has no bound; empty if there is none

private:
  std::vector<Halide::Expr> symbols;
  llvm::SmallVector<mlir::kiln::Interval> bounds;
};

} // namespace kiln::halide
