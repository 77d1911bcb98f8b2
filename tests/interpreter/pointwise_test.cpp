// SPDX-License-Identifier: Apache-2.0
// Pointwise ops, with hand-computed results: numbers, NaN and infinities, wrap-around, undetermined results.
#include <cmath>

#include "ops.h"

namespace kiln::interpreter {
namespace {

std::vector<Tensor> pair(std::vector<double> a, std::vector<double> b) {
  const auto n = static_cast<std::int64_t>(a.size());
  return {f32({n}, std::move(a)), f32({n}, std::move(b))};
}

TEST(Pointwise, BroadcastsFromTheLastAxis) {
  const Tensor a = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), b = f32({2, 1}, {10, 20});
  expectValues(evaluate(Op::add, {a, b}, {2, 2, 3}), {11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26});
  expectValues(evaluate(Op::sub, {b, a}, {2, 2, 3}), {9, 8, 7, 19, 18, 17, 6, 5, 4, 16, 15, 14});
  expectValues(evaluate(Op::mul, {a, f32({}, {-2})}, {2, 1, 3}), {-2, -4, -6, -8, -10, -12});
  expectValues(evaluate(Op::div, {f32({}, {12}), a}, {2, 1, 3}), {12, 6, 4, 3, 2.4, 2});
  EXPECT_THROW(evaluate(Op::add, {a, f32({2}, {1, 2})}, {2, 1, 3}), std::runtime_error);
}

TEST(Pointwise, MaximumAndReluKeepNan) {
  const Tensor y = evaluate(Op::maximum, pair({1, nan, 3, -infinity, nan}, {2, 2, nan, -7, infinity}), {5});
  expectExactly(evaluate(Op::maximum, pair({1, 5, -infinity}, {2, -5, infinity}), {3}), {2, 5, infinity});
  expectValues(y, {2, nan, nan, -7, nan});
  expectValues(evaluate(Op::relu, {f32({4}, {-1, 2, nan, -infinity})}, {4}), {0, 2, nan, 0});
}

TEST(Pointwise, InfinitiesAndNanGoThrough) {
  expectValues(evaluate(Op::add, pair({infinity, nan}, {1, 1}), {2}), {infinity, nan});
  // A simplifier may cancel equal operands, as for numbers.
  EXPECT_EQ(evaluate(Op::sub, pair({infinity}, {infinity}), {1}).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::add, pair({nan}, {nan}), {1}).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::div, pair({nan}, {nan}), {1}).errors[0], infinity);
  expectValues(evaluate(Op::mul, pair({infinity, -infinity}, {-2, -3}), {2}), {-infinity, infinity});
  expectValues(evaluate(Op::div, pair({1, infinity}, {infinity, 2}), {2}), {0, infinity});
  // A simplifier may replace infinity times 0 by 0; the sign of 0 decides the value of 1 / 0.
  EXPECT_EQ(evaluate(Op::mul, pair({infinity}, {0}), {1}).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::div, pair({1}, {0}), {1}).errors[0], infinity);
}

TEST(Pointwise, WhatLeavesTheRangeIsNotDetermined) {
  EXPECT_EQ(evaluate(Op::mul, pair({1e30}, {1e30}), {1}).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::add, pair({3e38}, {3e38}), {1}).errors[0], infinity);
  EXPECT_EQ(evaluate(Op::exp, {f32({1}, {100})}, {1}).errors[0], infinity);
  const Tensor small = evaluate(Op::mul, pair({1e-30}, {1e-30}), {1});
  EXPECT_GE(small.errors[0], 1e-38); // whether or not subnormals are flushed
  EXPECT_LE(small.errors[0], 1e-36);
}

TEST(Pointwise, IntegersWrapAndDivideTowardsZero) {
  const double least = -0x1p31, most = 0x1p31 - 1;
  auto both = [](std::vector<double> a, std::vector<double> b) {
    const auto n = static_cast<std::int64_t>(a.size());
    return std::vector<Tensor>{i32({n}, std::move(a)), i32({n}, std::move(b))};
  };
  expectExactly(evaluate(Op::add, both({most, 5}, {1, -7}), {2}), {least, -2});
  expectExactly(evaluate(Op::sub, both({least, 5}, {1, -7}), {2}), {most, 12});
  expectExactly(evaluate(Op::mul, both({65536, 123456789}, {65536, 1000}), {2}), {0, -1097262584});
  expectExactly(evaluate(Op::div, both({7, -7, 7, -7, 5, least}, {2, 2, -2, -2, 0, -1}), {6}),
                {3, -3, -3, 3, 0, least});
  expectExactly(evaluate(Op::maximum, both({-3, 4}, {2, 4}), {2}), {2, 4});
  const Tensor bytes = Tensor::of(ElementType::i8, {2}, {127, -128});
  expectExactly(evaluate(Op::add, {bytes, Tensor::of(ElementType::i8, {}, {1})}, {2}), {-128, -127});
  const Tensor nibbles = Tensor::of(ElementType::i4, {2}, {7, -8});
  expectExactly(evaluate(Op::add, {nibbles, Tensor::of(ElementType::i4, {}, {1})}, {2}), {-8, -7});
}

TEST(Pointwise, LessIsDecidedOnlyBeyondTheErrors) {
  const int element = static_cast<int>(ElementType::boolean);
  expectExactly(evaluate(Op::less, pair({1, 2, 2, nan, 1, -infinity}, {2, 1, 2, 1, nan, infinity}), {6}, {}, element),
                {1, 0, 0, 0, 0, 1});
  expectExactly(evaluate(Op::less, {i32({2}, {-5, 5}), i32({}, {5})}, {2}, {}, element), {1, 0});
  const Tensor a = withErrors(f32({3}, {1, 1, 1}), {0.5, 0.5, infinity});
  const Tensor y = evaluate(Op::less, {a, f32({3}, {1.4, 1.6, 9})}, {3}, {}, element);
  EXPECT_EQ(y.errors, (std::vector<double>{infinity, 0, infinity}));
  EXPECT_EQ(y.values[1], 1);
}

TEST(Pointwise, WhereSeesOnlyWhatItChooses) {
  const Tensor yes = boolean({2, 1}, {1, 0});
  const Tensor y =
      evaluate(Op::where, {yes, f32({3}, {1, nan, 3}), f32({}, {nan})}, {2, 3}, {}, static_cast<int>(ElementType::f32));
  expectValues(y, {1, nan, 3, nan, nan, nan});
  expectExactly(evaluate(Op::where, {yes, i32({}, {7}), i32({}, {-7})}, {2, 1}, {}, static_cast<int>(ElementType::i32)),
                {7, -7});
  // An undetermined condition: any value between those of both branches, if these are numbers.
  const Tensor open = withErrors(boolean({3}, {1, 1, 0}), {infinity, infinity, infinity});
  const Tensor z = evaluate(Op::where, {open, f32({3}, {1, 5, nan}), f32({3}, {3, 5, 1})}, {3}, {},
                            static_cast<int>(ElementType::f32));
  EXPECT_EQ(z.errors, (std::vector<double>{2, 0, infinity}));
}

TEST(Pointwise, FunctionsOfOneOperand) {
  const std::vector<double> x{-3, -0.5, 0, 0.25, 2};
  auto expect = [&](Op op, double (*function)(double)) {
    SCOPED_TRACE(static_cast<int>(op));
    std::vector<double> expected;
    for (double value : x)
      expected.push_back(function(value));
    expectValues(evaluate(op, {f32({5}, x)}, {5}), expected);
  };
  expect(Op::exp, [](double x) { return std::exp(x); });
  expect(Op::tanh, [](double x) { return std::tanh(x); });
  expect(Op::sigmoid, [](double x) { return 0.5 + 0.5 * std::tanh(x / 2); });
  expect(Op::relu, [](double x) { return x > 0 ? x : 0; });
  expect(Op::sin, [](double x) { return std::sin(x); });
  expect(Op::cos, [](double x) { return std::sin(x + std::acos(0.0)); });
  expect(Op::erf, [](double x) { return 1 - std::erfc(x); });
  expect(Op::expm1, [](double x) { return std::exp(x) - 1; });
  expect(Op::silu, [](double x) { return x * (0.5 + 0.5 * std::tanh(x / 2)); });
  expect(Op::gelu, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); });
  expect(Op::gelu_tanh,
         [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); });
  expectValues(evaluate(Op::log, {f32({4}, {0.5, 1, 8, infinity})}, {4}), {std::log(0.5), 0, std::log(8), infinity});
  expectValues(evaluate(Op::log, {f32({2}, {0, -1})}, {2}), {-infinity, nan});
  expectValues(evaluate(Op::log1p, {f32({4}, {-0.5, 0, 7, infinity})}, {4}), {std::log(0.5), 0, std::log(8), infinity});
  expectValues(evaluate(Op::log1p, {f32({2}, {-1, -2})}, {2}), {-infinity, nan});
  expectValues(evaluate(Op::expm1, {f32({2}, {-infinity, infinity})}, {2}), {-1, infinity});
  expectValues(evaluate(Op::erf, {f32({2}, {-infinity, infinity})}, {2}), {-1, 1});
  expectValues(evaluate(Op::sin, {f32({3}, {infinity, -infinity, nan})}, {3}), {nan, nan, nan});
  expectValues(evaluate(Op::cos, {f32({2}, {infinity, 0})}, {2}), {nan, 1});
  expectValues(evaluate(Op::sqrt, {f32({4}, {0, 2, 9, -1})}, {4}), {0, std::sqrt(2), 3, nan});
  expectValues(evaluate(Op::sigmoid, {f32({2}, {-infinity, infinity})}, {2}), {0, 1});
  expectValues(evaluate(Op::dropout, {f32({2}, {1, nan})}, {2}), {1, nan});
  // Reference values: torch.nn.functional.gelu(1), its tanh approximation, silu(1).
  expectValues(evaluate(Op::gelu, {f32({1}, {1})}, {1}), {0.8413447460685429});
  expectValues(evaluate(Op::gelu_tanh, {f32({1}, {1})}, {1}), {0.8411919906082768});
  expectValues(evaluate(Op::silu, {f32({1}, {1})}, {1}), {0.7310585786300049});
}

TEST(Pointwise, ExponentialsAndLogarithmsAreExactAtOne) {
  EXPECT_EQ(evaluate(Op::exp, {f32({1}, {0})}, {1}).errors[0], 0);
  EXPECT_EQ(evaluate(Op::log, {f32({1}, {1})}, {1}).errors[0], 0);
  const Tensor small = evaluate(Op::exp, {f32({1}, {-100})}, {1}); // subnormal
  EXPECT_GT(small.errors[0], 0);
  EXPECT_LE(small.errors[0], 0x1p-147);
}

TEST(Pointwise, SinesOfIntervals) {
  const Tensor x = withErrors(f32({3}, {100, 100, 100}), {0, 1e-3, 1e3});
  const Tensor sine = evaluate(Op::sin, {x}, {3}), cosine = evaluate(Op::cos, {x}, {3});
  for (const Tensor *y : {&sine, &cosine}) {
    EXPECT_LE(y->errors[0], 1e-6);
    EXPECT_GE(y->errors[1], 1e-3);
    EXPECT_LE(y->errors[1], 2e-3);
    EXPECT_GE(y->errors[2], 2); // any sine
  }
  EXPECT_EQ(evaluate(Op::sin, {f32({1}, {0})}, {1}).errors[0], 0);
  EXPECT_EQ(evaluate(Op::cos, {f32({1}, {0})}, {1}).errors[0], 0);
}

// The logarithm of 1 + x, where 1 + x may be 0 or below.
TEST(Pointwise, Log1pNearItsPoleIsAnInterval) {
  const Tensor y = evaluate(Op::log1p, {withErrors(f32({3}, {-0.75, -0.75, -1.5}), {0.125, 0.25, 0.25})}, {3});
  EXPECT_GE(y.errors[0], std::log(2) - 1e-9);
  EXPECT_LE(y.errors[0], 0.7);
  EXPECT_EQ(y.errors[1], infinity);
  EXPECT_EQ(y.errors[2], 0); // NaN
}

TEST(Pointwise, RootsAndLogarithmsNearZeroAreIntervals) {
  const Tensor x = withErrors(f32({3}, {1e-4, 1e-4, 1e-4}), {0, 5e-5, 2e-4});
  const Tensor root = evaluate(Op::sqrt, {x}, {3}), log = evaluate(Op::log, {x}, {3});
  EXPECT_LE(root.errors[0], 1e-8);
  EXPECT_GE(root.errors[1], 1e-2 - std::sqrt(5e-5));
  EXPECT_EQ(root.errors[2], infinity);
  EXPECT_GE(log.errors[1], std::log(2));
  EXPECT_LE(log.errors[1], std::log(2) + 1e-4);
  EXPECT_EQ(log.errors[2], infinity);
  EXPECT_EQ(evaluate(Op::div, {f32({}, {1}), x}, {3}).errors[2], infinity);
}

} // namespace
} // namespace kiln::interpreter
