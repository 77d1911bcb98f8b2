// SPDX-License-Identifier: Apache-2.0
//
// Helpers that evaluate single ops on literal tensors, for tests of the interpreter.
#pragma once

#include "compiler/interpreter/EvaluateOp.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace kiln::interpreter {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr int whole = static_cast<int>(ElementType::i32); // the element type of a result
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline Tensor f32(TensorShape shape, std::vector<double> values) {
  return Tensor::of(ElementType::f32, std::move(shape), std::move(values));
}
inline Tensor i32(TensorShape shape, std::vector<double> values) {
  return Tensor::of(ElementType::i32, std::move(shape), std::move(values));
}
inline Tensor boolean(TensorShape shape, std::vector<double> values) {
  return Tensor::of(ElementType::boolean, std::move(shape), std::move(values));
}
/// Returns start, start + step, ...
inline std::vector<double> counted(std::size_t count, double start = 0, double step = 1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(start + step * static_cast<double>(i));
  return values;
}
inline Tensor withErrors(Tensor x, std::vector<double> errors) {
  x.errors = std::move(errors);
  return x;
}

/// Evaluates an op. The result has the element type of the first operand by default.
inline Tensor evaluate(Op op, const std::vector<Tensor> &operands, TensorShape shape, const Attributes &attributes = {},
                       int element = -1) {
  Node node;
  node.op = op;
  node.element = element >= 0       ? static_cast<ElementType>(element)
                 : operands.empty() ? ElementType::f32
                                    : operands[0].element;
  node.attributes = attributes;
  std::vector<const Tensor *> pointers;
  for (const Tensor &operand : operands)
    pointers.push_back(&operand);
  return evaluateOp(node, pointers, shape);
}

inline Attributes along(int axis) {
  Attributes attributes;
  attributes.axis = axis;
  return attributes;
}

/// Expects values up to f64 rounding, NaN for NaN; each determined, with an error below `error` of 1 + |value|.
inline void expectValues(const Tensor &tensor, const std::vector<double> &expected, double error = 2e-5) {
  ASSERT_EQ(tensor.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("element " + std::to_string(i));
    EXPECT_TRUE(tensor.at(static_cast<std::int64_t>(i)).isDetermined());
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(tensor.values[i])) << tensor.values[i];
    else if (std::isinf(expected[i]))
      EXPECT_EQ(tensor.values[i], expected[i]);
    else
      EXPECT_NEAR(tensor.values[i], expected[i], 1e-12 * (1 + std::abs(expected[i])));
    EXPECT_LE(tensor.errors[i], std::isfinite(expected[i]) ? error * (1 + std::abs(expected[i])) : 0);
  }
}

/// Expects exactly these values, without errors.
inline void expectExactly(const Tensor &tensor, const std::vector<double> &expected) {
  EXPECT_EQ(tensor.values, expected);
  EXPECT_EQ(tensor.errors, std::vector<double>(expected.size()));
}

} // namespace kiln::interpreter
