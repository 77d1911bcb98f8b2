// SPDX-License-Identifier: Apache-2.0
//
// A lowering pass for all kernels: what their floats come to follows from the lowered statement only. Halide lets LLVM
// regroup sums, fuse products with them and take NaN for impossible, as it likes in each loop; after this pass every
// operation is rounded as it is stated, so two kernels that state the same operations on a row give it the same bits.
#pragma once

#include "Halide.h"

namespace kiln::halide {

class KeepOrderOfFloats : public Halide::Internal::IRMutator {
public:
  /// What becomes of products that are added to a sum in memory, or in a tile: rounded; fused with it; or as LLVM
  /// likes, where an engine has an instruction that may do either (relaxed SIMD).
  enum class Products { Rounded, Fused, Either };
  explicit KeepOrderOfFloats(Products products) : products(products) {}

private:
  using IRMutator::visit;
  Halide::Internal::Stmt visit(const Halide::Internal::Store *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::IfThenElse *op) override;
  Halide::Expr visit(const Halide::Internal::VectorReduce *op) override;

  Products products;
};

} // namespace kiln::halide
