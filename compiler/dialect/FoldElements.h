// SPDX-License-Identifier: Apache-2.0
//
// Constants of few elements through an op on elements: what the op's class says of one element (KilnOpsPointwise.td),
// applied to all.
#pragma once

#include <cmath>
#include <numbers>

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

/// Constants with more elements than this are folded only if all of them are equal.
inline constexpr int64_t maxFoldedElements = 65536;

/// Whether all elements are this number.
bool isSplat(Attribute attribute, double value);

/// The operand, if its type is the result's.
inline OpFoldResult keep(Value operand, Value result) {
  return operand.getType() == result.getType() ? operand : OpFoldResult();
}

/// An op on elements as a function of doubles or of integers; null: floats only.
struct ElementFunction {
  double (*ofFloats)(ArrayRef<double> x);
  int64_t (*ofIntegers)(ArrayRef<int64_t> x);
};

/// The elements of the result, whose operands broadcast; nothing if one of them is no constant, or too large.
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
