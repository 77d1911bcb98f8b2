// SPDX-License-Identifier: Apache-2.0
//
// The code generator of Halide 14 implements a load of every second, third or fourth element by dense loads. To share
// dense loads between several such loads, it starts at a multiple of the stride if it can guess one from the constant
// of the index: `in[x*2 + 1]` starts at `in[x*2]`. `in[y*13 - 13]` starts at `in[y*13 - 14]`, which for y = 1 is
// outside of the buffer. Later versions of Halide state dense loads in the lowered statement.
#pragma once

#include "targets/halide/Compat.h"

namespace kiln::halide {

/// Returns how many elements before its first one the generated code of a load reads.
int readBefore(const Halide::Internal::Load &load);

/// A lowering pass that makes loads which might start before their buffer start at their first element.
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
