// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of rows to int8: hand-computed results, and bounds that hold for operands with errors.
#include "compiler/interpreter/QuantizeRows.h"

#include "compiler/interpreter/Interpreter.h"
#include "kiln/dsl.h"
#include "traced.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace kiln::interpreter {
namespace {

using Values = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();

Tensor rows(TensorShape shape, Values values) {
  return Tensor::of(ElementType::f32, std::move(shape), std::move(values));
}

TEST(QuantizeRows, AreWhatTheSpecificationSays) {
  // Ties round to even; zeros stay zeros; a scale below half of the smallest number is 0.
  const Tensor x = rows({4, 4}, {127, 0.5, -1.5, 2.5, 0, 0, 0, -0.0, -3, 3, 1, 0, 0x1p-149, 0, 0, 63 * 0x1p-149});
  const Tensor scales = rowScales(x), numbers = quantizeRows(x, scales);
  EXPECT_EQ(scales.shape, (TensorShape{4}));
  EXPECT_EQ(scales.values, (Values{1, 0, static_cast<double>(3.0f / 127), 0}));
  EXPECT_EQ(numbers.element, ElementType::i8);
  EXPECT_EQ(numbers.values, (Values{127, 0, -2, 2, 0, 0, 0, 0, -127, 127, 42, 0, 0, 0, 0, 0}));
  EXPECT_EQ(throughInt8(rows({3}, {-3, 3, 1})).values,
            (Values{-127 * static_cast<double>(3.0f / 127), 127 * static_cast<double>(3.0f / 127),
                    42 * static_cast<double>(3.0f / 127)}));
}

TEST(QuantizeRows, RowsThatAreNoNumbersAreNaN) {
  const Tensor through = throughInt8(rows({4, 2}, {NAN, 1, 1, inf, -inf, 1, 2, 1}));
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_TRUE(std::isnan(through.values[i])) << i;
  EXPECT_EQ(through.values[6], 127 * static_cast<double>(2.0f / 127));
}

TEST(QuantizeRows, RequireRowsOfFloats) {
  EXPECT_THROW(rowScales(Tensor::zeros(ElementType::i32, {3})), std::runtime_error);
  EXPECT_THROW(rowScales(Tensor::zeros(ElementType::f32, {})), std::runtime_error);
  EXPECT_THROW(quantizeRows(rows({2, 2}, {1, 2, 3, 4}), rows({3}, {1, 2, 3})), std::runtime_error);
}

TEST(QuantizeRows, BoundsHoldWhereOperandsAreOff) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> part(-1, 1);
  std::size_t tight = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Tensor x = Tensor::zeros(ElementType::f32, {3, 17}), moved = x;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.values[i] = normal(random);
      x.errors[i] = trial % 3 ? std::ldexp(1.0, -10 - trial % 12) : 0;
      moved.values[i] = roundTo(ElementType::f32, x.values[i] + part(random) * x.errors[i] * 0.99);
    }
    const Tensor expected = throughInt8(x), actual = throughInt8(moved);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(std::abs(actual.values[i] - expected.values[i]), expected.errors[i] * 1.0001 + 1e-12) << trial;
      tight += expected.errors[i] < 1e-2;
    }
  }
  EXPECT_GT(tight, 300u * 51 / 2);
}

struct Products : Model {
  Linear<4, 2, false> a{"a"}, b{"b"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 1, 4> x) const { return kiln::outputs(a(x), b(x)); }
};

TEST(QuantizeRows, OfTheLinearsThatAreNamed) {
  Interpreter interpreter(trace<Products>(),
                          [](const std::string &) { return rows({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}); });
  interpreter.takesInt8 = [](const std::string &name, int dim) { return name == "a.weight" && dim == 0; };
  const std::vector<Tensor> results = interpreter.run(0, {}, {rows({1, 4}, {127, 1.25, 0, 0})});
  EXPECT_EQ(results[0].values, (Values{127, 1}));
  EXPECT_EQ(results[1].values, (Values{127, 1.25}));
}

} // namespace
} // namespace kiln::interpreter
