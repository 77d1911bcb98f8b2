// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/workarounds/StridedLoads.h"

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

// Mirrors CodeGen_LLVM::visit(const Load *) of Halide 14.
int readBefore(const Load &load) {
  if (!stridedLoadsStartEarly)
    return 0;
  const Ramp *ramp = load.index.as<Ramp>();
  std::optional<int64_t> stride = ramp ? constantInt(ramp->stride) : std::nullopt;
  if (!stride || *stride < 2 || *stride > 4 || !is_const_one(load.predicate) || !ramp->base.type().is_scalar())
    return 0;
  if (gcd(*stride, load.alignment.modulus) == *stride)
    return int(mod_imp(load.alignment.remainder, *stride));
  const Add *sum = ramp->base.as<Add>();
  std::optional<int64_t> constant = constantInt(sum ? sum->b : ramp->base);
  return constant ? int(mod_imp(*constant, *stride)) : 0;
}

Interval BoundStridedLoads::bounds(const Expr &e) const {
  if (!e.type().is_int() && !e.type().is_uint())
    return Interval::everything();
  return bounds_of_expr_in_scope(e, scope, empty_func_value_bounds(), /*const_bound=*/true);
}

Expr BoundStridedLoads::visit(const Load *op) {
  Expr mutated = IRMutator::visit(op);
  const Load &load = *mutated.as<Load>();
  int before = readBefore(load);
  if (before == 0)
    return mutated;
  const Ramp &ramp = *load.index.as<Ramp>();
  Interval first = bounds(ramp.base);
  if (first.has_lower_bound() && can_prove(first.min >= before))
    return mutated;
  const Add *sum = ramp.base.as<Add>();
  if (!sum || !is_const(sum->b))
    return mutated; // a multiple of the stride is before it, in the buffer
  // Halide guesses only from a constant that is the last operand.
  Expr index = Ramp::make(Add::make(sum->b, sum->a), ramp.stride, ramp.lanes);
  return Load::make(load.type, load.name, index, load.image, load.param, load.predicate, load.alignment);
}

Expr BoundStridedLoads::visit(const Let *op) {
  Expr value = mutate(op->value);
  ScopedBinding<Interval> bind(scope, op->name, bounds(value));
  return Let::make(op->name, value, mutate(op->body));
}

Stmt BoundStridedLoads::visit(const LetStmt *op) {
  Expr value = mutate(op->value);
  ScopedBinding<Interval> bind(scope, op->name, bounds(value));
  return LetStmt::make(op->name, value, mutate(op->body));
}

Stmt BoundStridedLoads::visit(const For *op) {
  Expr min = mutate(op->min), extent = mutate(op->extent);
  ScopedBinding<Interval> bind(scope, op->name, Interval(bounds(min).min, bounds(min + extent - 1).max));
  return withRange(*op, min, extent, mutate(op->body));
}

} // namespace kiln::halide
