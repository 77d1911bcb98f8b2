// SPDX-License-Identifier: Apache-2.0
//
// A lowering pass for all kernels, after which their float results depend only on the lowered statement. Halide lets
// LLVM reassociate sums, contract products into them and assume that there is no NaN, differently in each loop. After
// this pass every operation is rounded as stated, so two kernels that state the same operations on a row compute the
// same bits.
#pragma once

#include "targets/halide/Compat.h"

namespace kiln::halide {

class KeepOrderOfFloats : public Halide::Internal::IRMutator {
public:
  /// How products that are added to a sum, in memory or in a tile, are computed: rounded by themselves; fused with the
  /// addition; or as LLVM decides, if an engine has an instruction that may do either (relaxed SIMD).
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
