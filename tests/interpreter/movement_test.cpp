// SPDX-License-Identifier: Apache-2.0
// Ops that move elements or read tables, with hand-computed results; element types; comparisons.
#include <cmath>

#include "compiler/interpreter/Compare.h"
#include "ops.h"

namespace kiln::interpreter {
namespace {

constexpr int single = static_cast<int>(ElementType::f32);

TEST(Movement, KeepsElementsAndTheirErrors) {
  const Tensor x = withErrors(f32({2, 3}, counted(6)), counted(6, 0.5));
  const Tensor turned = evaluate(Op::transpose, {x}, {3, 2}, [] {
    Attributes attributes;
    attributes.permutation = {1, 0};
    return attributes;
  }());
  EXPECT_EQ(turned.values, (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(turned.errors, (std::vector<double>{0.5, 3.5, 1.5, 4.5, 2.5, 5.5}));
  EXPECT_EQ(evaluate(Op::reshape, {x}, {3, 1, 2}).errors, x.errors);
  EXPECT_EQ(evaluate(Op::expand, {f32({2, 1}, {1, 2})}, {2, 2, 2}).values,
            (std::vector<double>{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(evaluate(Op::concat, {x, f32({2, 1}, {7, 8})}, {2, 4}, along(1)).values,
            (std::vector<double>{0, 1, 2, 7, 3, 4, 5, 8}));
  Attributes from = along(1), last = along(1);
  from.start = 1;
  last.at_end = true;
  EXPECT_EQ(evaluate(Op::slice, {x}, {2, 2}, from).values, (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(evaluate(Op::slice, {x}, {2, 1}, last).values, (std::vector<double>{2, 5}));
  EXPECT_THROW(evaluate(Op::slice, {x}, {2, 3}, from), std::runtime_error);
  EXPECT_THROW(evaluate(Op::reshape, {x}, {4}), std::runtime_error);
  EXPECT_THROW(evaluate(Op::expand, {x}, {2, 4}), std::runtime_error);
}

TEST(Movement, TransposesThreeAxes) {
  Attributes attributes;
  attributes.permutation = {2, 0, 1};
  const Tensor y = evaluate(Op::transpose, {f32({2, 1, 3}, counted(6))}, {3, 2, 1}, attributes);
  expectExactly(y, {0, 3, 1, 4, 2, 5});
}

TEST(Lookup, TakesTheNearestRowForAnIndexOutside) {
  const Tensor table = f32({3, 2}, {0, 1, 10, 11, 20, 21});
  expectExactly(evaluate(Op::embedding, {i32({2, 1}, {2, 0}), table}, {2, 1, 2}, {}, single), {20, 21, 0, 1});
  expectExactly(evaluate(Op::gather, {table, i32({2}, {-4, 99})}, {2, 2}, along(0)), {0, 1, 20, 21});
  expectExactly(evaluate(Op::gather, {table, i32({1, 2}, {1, 0})}, {3, 1, 2}, along(1)), {1, 0, 11, 10, 21, 20});
  expectExactly(evaluate(Op::gather, {table, i32({}, {1})}, {2}, along(0)), {10, 11});
  const Tensor open = withErrors(i32({2}, {1, 1}), {infinity, 0});
  EXPECT_EQ(evaluate(Op::gather, {table, open}, {2, 2}, along(0)).errors,
            (std::vector<double>{infinity, infinity, 0, 0}));
}

TEST(Lookup, SortsPositions) {
  Attributes descending = along(1);
  descending.reverse = true;
  const Tensor x = f32({2, 4}, {3, std::nan(""), 3, -0.0, 1, infinity, 0, 1});
  expectExactly(evaluate(Op::argsort, {x}, {2, 4}, along(1), whole), {3, 0, 2, 1, 2, 0, 3, 1});
  expectExactly(evaluate(Op::argsort, {x}, {2, 4}, descending, whole), {1, 0, 2, 3, 1, 0, 3, 2});
  expectExactly(evaluate(Op::argsort, {x}, {2, 2}, descending, whole), {1, 0, 1, 0});
  expectExactly(evaluate(Op::argsort, {x}, {2, 4}, along(0), whole), {1, 1, 1, 0, 0, 0, 0, 1});
  // Two elements may be in either order; a third is certain.
  const Tensor close = withErrors(f32({3}, {1, 5, 1.25}), {0.25, 0.5, 0.125});
  EXPECT_EQ(evaluate(Op::argsort, {close}, {3}, along(0), whole).errors, (std::vector<double>{infinity, infinity, 0}));
  EXPECT_THROW(evaluate(Op::argsort, {x}, {2, 5}, along(1), whole), std::runtime_error);
}

TEST(Lookup, AddsRowsByIndex) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6}), rows = f32({4, 2}, {10, 20, std::nan(""), 7, 30, 40, 0.5, 0.25});
  const Tensor sums = evaluate(Op::index_add, {x, i32({4}, {2, -1, 2, 0}), rows}, {3, 2});
  EXPECT_EQ(sums.values, (std::vector<double>{1.5, 2.25, 3, 4, 45, 66}));
  EXPECT_EQ(sums.errors[2], 0);
  expectExactly(
      evaluate(Op::index_add, {i32({2, 1}, {0x1p31 - 1, 5}), i32({2}, {0, 2}), i32({2, 1}, {2, 9})}, {2, 1}, {}, whole),
      {-0x1p31 + 1, 5});
  const Tensor open = withErrors(i32({4}, {2, -1, 2, 0}), {0, 0, infinity, 0});
  EXPECT_EQ(evaluate(Op::index_add, {x, open, rows}, {3, 2}).errors, std::vector<double>(6, infinity));
}

TEST(Lookup, PositionsConstantsAndSines) {
  expectExactly(evaluate(Op::positions, {f32({2, 3}, counted(6))}, {3}, along(1), whole), {0, 1, 2});
  Attributes values;
  values.values = {0.1, -infinity, 1e-50};
  expectExactly(evaluate(Op::constant, {}, {3}, values), {0.1f, -infinity, 0});
  values.values = {1.5};
  EXPECT_THROW(evaluate(Op::constant, {}, {1}, values, whole), std::runtime_error);
  Attributes sines;
  sines.base = 100;
  const Tensor y = evaluate(Op::sinusoidal, {i32({2}, {0, 7})}, {2, 4}, sines, single);
  expectValues(y, {0, 1, 0, 1, std::sin(7), std::cos(7), std::sin(0.7), std::cos(0.7)});
}

TEST(Lookup, SinesOfFrequenciesAndFractions) {
  Attributes pairs;
  pairs.values = {0.5, 3};
  const Tensor y = evaluate(Op::sinusoidal, {f32({3}, {0.25, -2.5, 0x1p31})}, {3, 4}, pairs, single);
  expectValues(y, {std::sin(0.125), std::cos(0.125), std::sin(0.75), std::cos(0.75), std::sin(-1.25), std::cos(-1.25),
                   std::sin(-7.5), std::cos(-7.5), std::nan(""), std::nan(""), std::nan(""), std::nan("")});
  // The first pair reads the second row of positions, the second pair the first row.
  pairs.pair_axes = {1, 0};
  const Tensor z = evaluate(Op::sinusoidal, {i32({2, 1}, {1, 2})}, {1, 4}, pairs, single);
  expectValues(z, {std::sin(1), std::cos(1), std::sin(3), std::cos(3)});
  pairs.pair_axes = {1, 2};
  EXPECT_THROW(evaluate(Op::sinusoidal, {i32({2, 1}, {1, 2})}, {1, 4}, pairs, single), std::runtime_error);
  // An error of a position is multiplied by the frequency.
  pairs.pair_axes.clear();
  const Tensor near = withErrors(f32({1}, {0.25}), {0.01});
  const Tensor w = evaluate(Op::sinusoidal, {near}, {1, 4}, pairs, single);
  EXPECT_NEAR(w.errors[0], 0.005, 1e-5);
  EXPECT_NEAR(w.errors[2], 0.03, 1e-5);
}

TEST(Elements, AreRounded) {
  EXPECT_EQ(roundTo(ElementType::f32, 0.1), 0.1f);
  EXPECT_EQ(roundTo(ElementType::f32, 1e39), infinity);
  EXPECT_EQ(roundTo(ElementType::f16, 1.0 + 0x1p-11), 1);
  EXPECT_EQ(roundTo(ElementType::f16, 1.0 + 0x1.8p-11), 1 + 0x1p-10);
  EXPECT_EQ(roundTo(ElementType::f16, 65519), 65504);
  EXPECT_EQ(roundTo(ElementType::f16, 65520), infinity);
  EXPECT_EQ(roundTo(ElementType::f16, 0x1p-25), 0);
  EXPECT_EQ(roundTo(ElementType::bf16, 1 + 0x1p-7), 1 + 0x1p-7);
  EXPECT_EQ(roundTo(ElementType::bf16, 1 + 0x1p-8), 1);
  EXPECT_THROW(roundTo(ElementType::i32, 0x1p31), std::runtime_error);
  EXPECT_THROW(roundTo(ElementType::boolean, 2), std::runtime_error);
  EXPECT_THROW(roundTo(ElementType::i4, 8), std::runtime_error);
}

TEST(Extents, AreEvaluatedWithinTheirBounds) {
  constexpr Dim T{"tokens", 2, 8}, C{"context", T, 16}, B{"batch", 1, 4};
  EXPECT_EQ(evaluate(2 * T + 1, {{"tokens", 5}}), 11);
  EXPECT_EQ(evaluate(B * T, {{"tokens", 5}, {"batch", 3}}), 15);
  EXPECT_EQ(evaluate(Dim(7), {}), 7);
  EXPECT_THROW(evaluate(T, {}), std::runtime_error);
  EXPECT_THROW(evaluate(T, {{"tokens", 9}}), std::runtime_error);
  EXPECT_THROW(evaluate(C, {{"tokens", 6}, {"context", 5}}), std::runtime_error);
}

TEST(Compare, FindsWhatIsWrong) {
  const Tensor expected = withErrors(f32({2, 3}, {1, 2, 3, nan, infinity, 6}), {0.25, 0.25, 0, 0, 0, infinity});
  std::vector<float> actual{1.25f, 1.9f, 3, NAN, INFINITY, -99};
  Comparison good = compare(expected, actual);
  EXPECT_TRUE(good.isRight) << describe(good);
  EXPECT_EQ(good.undetermined, 1u);
  EXPECT_DOUBLE_EQ(good.worst, 1);
  EXPECT_FALSE(compare(expected, actual, 0.5).isRight);
  actual = {1.26f, 2, 3, 0, INFINITY, 0};
  const Comparison bad = compare(expected, actual);
  EXPECT_EQ(bad.wrong, 2u);
  EXPECT_EQ(bad.first, 0u);
  EXPECT_EQ(describe(bad).substr(0, 66), "2 of 6 elements are wrong, first [0, 0]: got 1.25999999, expected ");
  actual = {1, 2, 3.0000005f, NAN, -INFINITY, 0};
  EXPECT_EQ(compare(expected, actual).wrong, 2u);
  actual.pop_back();
  EXPECT_FALSE(compare(expected, actual).isRight);
  const std::vector<std::int32_t> numbers{5, -6};
  EXPECT_TRUE(compare(i32({2}, {5, -6}), numbers).isRight);
  EXPECT_EQ(compare(i32({2}, {5, 6}), numbers).first, 1u);
}

TEST(Compare, CountsTightBounds) {
  EXPECT_EQ(tightShare(withErrors(f32({4}, {1, 1, 1, 1}), {0, 1e-4, 0.1, infinity})), 0.5);
}

} // namespace
} // namespace kiln::interpreter
