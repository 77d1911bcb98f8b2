// SPDX-License-Identifier: Apache-2.0
//
// Constant folding of elementwise ops for constants of few elements: applies the scalar function of the op's class
// (KilnOpsPointwise.td) to all elements.
#pragma once

#include <cmath>
#include <numbers>

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// Constants with more elements than this are folded only if all of them are equal.
inline constexpr int64_t maxFoldedElements = 65536;

/// Whether all elements are equal to `value`.
bool isSplat(Attribute attribute, double value);

/// Returns the operand if its type is the result's.
inline OpFoldResult keep(Value operand, Value result) {
  return operand.getType() == result.getType() ? operand : OpFoldResult();
}

/// An elementwise op as a function of doubles or of integers; null: floats only.
struct ElementFunction {
  double (*ofFloats)(ArrayRef<double> x);
  int64_t (*ofIntegers)(ArrayRef<int64_t> x);
};

/// Folds the op, whose operands broadcast; returns null if an operand is not a constant, or too large.
OpFoldResult foldElements(Type resultType, ArrayRef<Attribute> operands, const ElementFunction &function);

template <class ConcreteOp> OpFoldResult foldUnary(ConcreteOp op, Attribute x) {
  return foldElements(op.getType(), {x}, {[](ArrayRef<double> x) { return ConcreteOp::evaluate(x[0]); }, nullptr});
}

template <class ConcreteOp> OpFoldResult foldBinary(ConcreteOp op, Attribute lhs, Attribute rhs) {
  if (ConcreteOp::isIdempotent && op.getLhs() == op.getRhs())
    return op.getLhs();
  if (ConcreteOp::neutral && isSplat(rhs, *ConcreteOp::neutral))
    if (OpFoldResult same = keep(op.getLhs(), op.getResult()))
      return same;
  return foldElements(op.getType(), {lhs, rhs},
                      {[](ArrayRef<double> x) { return ConcreteOp::evaluate(x[0], x[1]); },
                       [](ArrayRef<int64_t> x) { return ConcreteOp::evaluate(x[0], x[1]); }});
}

} // namespace mlir::kiln
