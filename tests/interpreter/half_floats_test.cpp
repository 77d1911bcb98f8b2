// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16: ops compute in f32, and round the result once or not at all; sums are in f32.
#include "ops.h"

#include <cmath>

namespace kiln::interpreter {
namespace {

constexpr ElementType types[] = {ElementType::f16, ElementType::bf16};

Tensor of(ElementType element, TensorShape shape, std::vector<double> values) {
  return Tensor::of(element, std::move(shape), std::move(values));
}
/// Returns the largest relative error of one rounding.
double unit(ElementType element) { return std::ldexp(1.0, -info(element).digits); }

TEST(HalfFloats, AResultIsRoundedOnceOrNot) {
  for (ElementType element : types) {
    const Tensor y = evaluate(Op::add, {of(element, {1}, {1}), of(element, {1}, {unit(element) / 2})}, {1});
    EXPECT_EQ(y.values[0], 1 + unit(element) / 2) << "in f32";
    EXPECT_GE(y.errors[0], unit(element) / 2) << "or rounded to 1";
    EXPECT_LE(y.errors[0], 1.01 * unit(element) + 1e-6);
  }
}

TEST(HalfFloats, WhatTheTypeHoldsIsExact) {
  for (ElementType element : types) {
    const Tensor x = of(element, {3}, {1, -0.5, 96});
    expectExactly(evaluate(Op::relu, {x}, {3}), {1, 0, 96});
    expectExactly(evaluate(Op::transpose, {x}, {3},
                           [] {
                             Attributes attributes;
                             attributes.permutation = {0};
                             return attributes;
                           }()),
                  {1, -0.5, 96});
  }
}

// 1000 terms of 1/4 and a first one of 1024: in the 16-bit type each sum would be rounded back to 1024.
TEST(HalfFloats, SumsAreThoseOfF32) {
  for (ElementType element : types) {
    std::vector<double> terms(1001, 0.25);
    terms[0] = 1024;
    const Tensor x = of(element, {1001}, terms), ones = of(element, {1, 1001}, std::vector<double>(1001, 1));
    Attributes first;
    first.axis = 0;
    for (const Tensor &y : {evaluate(Op::sum, {x}, {}, first), evaluate(Op::linear, {x, ones}, {1})}) {
      EXPECT_EQ(y.values[0], 1274);
      EXPECT_LE(y.errors[0], 1.1 * unit(element) * 1274);
    }
  }
}

TEST(HalfFloats, CastsRoundToTheNearestEven) {
  const Tensor x = Tensor::of(ElementType::f32, {4}, {1 + 0x1p-11, 1 + 0x1.8p-10, 65520, 1e-8});
  const Tensor half = evaluate(Op::cast, {x}, {4}, {}, static_cast<int>(ElementType::f16));
  expectExactly(half, {1, 1 + 0x1p-9, infinity, 0});
  const Tensor number = i32({1}, {16777217 + (1 << 16)}); // rounded to f32 first
  expectExactly(evaluate(Op::cast, {number}, {1}, {}, static_cast<int>(ElementType::bf16)), {16777216});
  expectExactly(evaluate(Op::cast, {half}, {4}, {}, static_cast<int>(ElementType::f32)), {1, 1 + 0x1p-9, infinity, 0});
}

// 300 * 300 overflows f16 and not f32, in which the next op may reduce it again.
TEST(HalfFloats, WhatMayOverflowIsNotDetermined) {
  const Tensor x = of(ElementType::f16, {1}, {300});
  EXPECT_FALSE(evaluate(Op::mul, {x, x}, {1}).at(0).isDetermined());
  const Tensor wide = of(ElementType::bf16, {1}, {300});
  EXPECT_TRUE(evaluate(Op::mul, {wide, wide}, {1}).at(0).isDetermined());
}

TEST(HalfFloats, SmallNumbersOfF16AreNumbers) {
  const Tensor x = of(ElementType::f16, {1}, {0x1p-24}), y = evaluate(Op::add, {x, x}, {1});
  EXPECT_EQ(x.errors[0], 0);
  EXPECT_EQ(y.values[0], 0x1p-23);
  EXPECT_LE(y.errors[0], 0x1p-25 * 1.01);
}

} // namespace
} // namespace kiln::interpreter
