// SPDX-License-Identifier: Apache-2.0
//
// Halide's code generator makes a load of every second, third or fourth element of dense loads. For loads that share
// these it begins at a multiple of the stride where it guesses one from the constant of the index: `in[x*2 + 1]` begins
// at `in[x*2]`. Of `in[y*13 - 13]` it begins at `in[y*13 - 14]`, which for y = 1 is not in the buffer.
#pragma once

#include "Halide.h"

namespace kiln::halide {

/// How many elements before its first one a load reads, if its code is generated as it stands.
int readBefore(const Halide::Internal::Load &load);

/// A lowering pass: loads that may begin before their buffer begin with their first element.
struct BoundStridedLoads : Halide::Internal::IRMutator {
private:
  using IRMutator::visit;
  Halide::Expr visit(const Halide::Internal::Load *op) override;
  Halide::Expr visit(const Halide::Internal::Let *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::LetStmt *op) override;
  Halide::Internal::Stmt visit(const Halide::Internal::For *op) override;

  Halide::Internal::Interval bounds(const Halide::Expr &e) const;

  Halide::Internal::Scope<Halide::Internal::Interval> scope;
};

} // namespace kiln::halide
