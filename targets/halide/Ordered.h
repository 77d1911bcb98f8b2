// SPDX-License-Identifier: Apache-2.0
//
// A lowering pass for kernels with kiln.ordered: what their floats come to follows from the lowered statement alone.
// Halide lets LLVM regroup sums, fuse products with them and take NaN for impossible, as it likes in each loop; behind
// this pass every operation is rounded as it stands, so two forms of a kernel that state the same operations on a row
// give it the same bits.
#pragma once

#include "Halide.h"

namespace kiln::halide {

class KeepOrderOfFloats : public Halide::Internal::IRMutator {
public:
  /// hasFma: products that are added to a sum in memory, or in a tile, are fused with it.
  explicit KeepOrderOfFloats(bool hasFma) : hasFma(hasFma) {}

private:
  using IRMutator::visit;
  Halide::Internal::Stmt visit(const Halide::Internal::Store *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;
  Halide::Expr visit(const Halide::Internal::VectorReduce *op) override;

  bool hasFma;
};

} // namespace kiln::halide
