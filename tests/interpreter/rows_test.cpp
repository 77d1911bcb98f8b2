// SPDX-License-Identifier: Apache-2.0
// Reductions, softmaxes and norms, with hand-computed results.
#include <cmath>

#include "ops.h"

namespace kiln::interpreter {
namespace {

TEST(Reductions, DropTheirAxis) {
  const Tensor x = f32({2, 3, 2}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  expectValues(evaluate(Op::sum, {x}, {2, 2}, along(1)), {9, 12, -9, -12});
  expectValues(evaluate(Op::mean, {x}, {2, 2}, along(1)), {3, 4, -3, -4});
  expectValues(evaluate(Op::sum, {x}, {3, 2}, along(0)), {0, 0, 0, 0, 0, 0});
  expectExactly(evaluate(Op::max, {x}, {2, 3}, along(2)), {2, 4, 6, -1, -3, -5});
  expectExactly(evaluate(Op::argmax, {x}, {2, 2}, along(1), whole), {2, 2, 0, 0});
  expectExactly(evaluate(Op::sum, {i32({3}, {0x1p31 - 1, 1, 5})}, {}, along(0)), {-0x1p31 + 5});
  expectExactly(evaluate(Op::max, {i32({3}, {-7, -3, -5})}, {}, along(0)), {-3});
}

// Bounds are those of sums of differences, however large the elements are.
TEST(Reductions, ShiftedMeans) {
  Attributes shifted = along(1);
  shifted.shifted = true;
  const Tensor x = f32({2, 3}, {0x1p20, 0x1p20 + 1, 0x1p20 + 5, 7, 7, 7});
  const Tensor means = evaluate(Op::mean, {x}, {2}, shifted), plain = evaluate(Op::mean, {x}, {2}, along(1));
  expectValues(means, {0x1p20 + 2, 7});
  EXPECT_LT(means.errors[0], 0.7 * plain.errors[0]);
  const Tensor inexact = withErrors(f32({1, 4}, {1, 1, 1, 1}), {0.5, 0, 0, 0});
  EXPECT_NEAR(evaluate(Op::mean, {inexact}, {1}, shifted).errors[0], 0.125, 1e-5) << "a share of the first element's";
  expectValues(evaluate(Op::mean, {f32({1, 2}, {infinity, 1})}, {1}, shifted), {nan});
}

TEST(Reductions, RunningSums) {
  const Tensor x = f32({2, 3}, {1, 2, 3, -1, infinity, 4});
  expectValues(evaluate(Op::cumsum, {x}, {2, 3}, along(1)), {1, 3, 6, -1, infinity, infinity});
  expectValues(evaluate(Op::cumsum, {x}, {2, 3}, along(0)), {1, 2, 3, 0, infinity, 7});
  Attributes reverse = along(1);
  reverse.reverse = true;
  expectValues(evaluate(Op::cumsum, {x}, {2, 3}, reverse), {6, 5, 3, infinity, infinity, 4});
  expectValues(evaluate(Op::cumsum, {f32({3}, {1, nan, 2})}, {3}, along(0)), {1, nan, nan});
  expectExactly(evaluate(Op::cumsum, {i32({3}, {0x1p31 - 1, 1, 5})}, {3}, along(0)),
                {0x1p31 - 1, -0x1p31, -0x1p31 + 5});
}

TEST(Reductions, NanIsLargest) {
  const Tensor x = f32({3, 3}, {1, nan, infinity, 4, 4, 3, nan, 1, nan});
  expectValues(evaluate(Op::max, {x}, {3}, along(1)), {nan, 4, nan});
  expectExactly(evaluate(Op::argmax, {x}, {3}, along(1), whole), {1, 0, 0});
  expectValues(evaluate(Op::sum, {f32({3}, {infinity, 1, -infinity})}, {}, along(0)), {nan});
}

TEST(Reductions, ArgmaxIsOpenBetweenCloseCandidates) {
  const Tensor close = withErrors(f32({3}, {1, 1.05, 0}), {0.1, 0, 0});
  EXPECT_EQ(evaluate(Op::argmax, {close}, {}, along(0), whole).errors[0], infinity);
  const Tensor apart = withErrors(f32({3}, {1, 1.5, 0}), {0.1, 0.1, 1});
  expectExactly(evaluate(Op::argmax, {apart}, {}, along(0), whole), {1});
  const Tensor most = evaluate(Op::max, {close}, {}, along(0));
  EXPECT_NEAR(most.errors[0], 0.05, 1e-6); // from 1.05 to 1.1
}

TEST(Rows, Softmax) {
  const double e1 = std::exp(1), e2 = std::exp(2);
  const Tensor x = f32({2, 3}, {0, 1, 2, -5, -5, -5});
  expectValues(evaluate(Op::softmax, {x}, {2, 3}, along(1)),
               {1 / (1 + e1 + e2), e1 / (1 + e1 + e2), e2 / (1 + e1 + e2), 1.0 / 3, 1.0 / 3, 1.0 / 3});
  expectValues(evaluate(Op::log_softmax, {x}, {2, 3}, along(1)),
               {-std::log(1 + e1 + e2), 1 - std::log(1 + e1 + e2), 2 - std::log(1 + e1 + e2), -std::log(3),
                -std::log(3), -std::log(3)});
  expectValues(evaluate(Op::softmax, {f32({2, 1}, {1, 3})}, {2, 1}, along(0)), {1 / (1 + e2), e2 / (1 + e2)});
  expectValues(evaluate(Op::softmax, {f32({3}, {-infinity, 0, 0})}, {3}, along(0)), {0, 0.5, 0.5});
  expectValues(evaluate(Op::softmax, {f32({2}, {nan, 0})}, {2}, along(0)), {nan, nan});
  expectValues(evaluate(Op::softmax, {f32({2}, {3000, -3000})}, {2}, along(0)), {1, 0}, 1e-3);
}

// Errors beyond the range of a double's exponential still give weights within [0, 1].
TEST(Rows, SoftmaxOfUnknownScoresStaysWithinOne) {
  const Tensor x = withErrors(f32({3}, {0, 1, 2}), {1e6, 1e6, 0});
  const Tensor y = evaluate(Op::softmax, {x}, {3}, along(0));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_LE(y.errors[i], 1.01);
    EXPECT_GE(y.errors[i], 0.6);
  }
}

// A simplifier may replace x - x by 0, so that NaN as the only element of a row may give 1, or what a norm adds.
TEST(Rows, OneElementMayHideNan) {
  const Tensor x = f32({2, 1}, {std::numeric_limits<double>::quiet_NaN(), 3}), one = f32({1}, {1});
  Attributes attributes = along(1);
  attributes.epsilon = 0.25;
  const Tensor weights = evaluate(Op::softmax, {x}, {2, 1}, attributes);
  EXPECT_EQ(weights.errors[0], infinity);
  EXPECT_EQ(weights.values[1], 1);
  EXPECT_EQ(evaluate(Op::layer_norm, {x, one, one}, {2, 1}, attributes).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::rms_norm, {x, one}, {2, 1}, attributes).errors[0], 0);
}

TEST(Rows, LayerNormAndRmsNorm) {
  Attributes attributes;
  attributes.epsilon = 0.25;
  // Mean 2, variance 2/3; the mean of squares is 14 / 3.
  const Tensor x = f32({1, 3}, {1, 2, 3}), weight = f32({3}, {1, 10, -2}), bias = f32({3}, {0, 5, 1});
  const double root = std::sqrt(2.0 / 3 + 0.25), square = std::sqrt(14.0 / 3 + 0.25);
  expectValues(evaluate(Op::layer_norm, {x, weight, bias}, {1, 3}, attributes), {-1 / root, 5, -2 / root + 1});
  expectValues(evaluate(Op::rms_norm, {x, weight}, {1, 3}, attributes), {1 / square, 20 / square, -6 / square});
  const Tensor flat = f32({3}, {7, 7, 7});
  expectValues(evaluate(Op::layer_norm, {flat, weight, bias}, {3}, attributes), {0, 5, 1}, 1e-3);
  const Tensor broken = f32({3}, {1, infinity, 3});
  const Tensor y = evaluate(Op::layer_norm, {broken, weight, bias}, {3}, attributes);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(std::isnan(y.values[i]) && y.errors[i] == 0);
  EXPECT_THROW(evaluate(Op::rms_norm, {x, bias}, {1, 3}), std::runtime_error); // epsilon is 0
}

} // namespace
} // namespace kiln::interpreter
