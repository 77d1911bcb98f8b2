// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights: the numbers that they represent, with hand-computed results and properties of random ones.
#include "compiler/interpreter/Storage.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace kiln::interpreter {
namespace {

using Values = std::vector<double>;

constexpr ElementType f16 = ElementType::f16, bf16 = ElementType::bf16, i8 = ElementType::i8;

Values stored(ElementType element, Values values, TensorShape shape, std::int64_t dim = 0) {
  roundToStored(values, shape, {element, dim});
  return values;
}
/// Quantises all values in one row.
Values stored(ElementType element, const Values &values) {
  return stored(element, values, {1, static_cast<std::int64_t>(values.size())});
}

/// Returns f32 numbers of either sign, whose magnitudes differ by up to 2^`exponents`.
Values draw(std::size_t count, int exponents, unsigned seed) {
  std::mt19937 random(seed);
  Values values(count);
  for (double &value : values) {
    const double fraction = 1 + static_cast<double>(random() >> 9) * 0x1p-23;
    const int exponent = -static_cast<int>(random() % static_cast<unsigned>(exponents));
    value = std::ldexp(random() % 2 ? fraction : -fraction, exponent);
  }
  return values;
}

std::string errorOf(ElementType element, const Values &values, const TensorShape &shape, std::int64_t dim = 0) {
  try {
    stored(element, values, shape, dim);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

TEST(StoredHalfFloats, MidpointsGoToTheEvenNeighbour) {
  EXPECT_EQ(stored(f16, {1 + 0x1p-11, 1 + 0x3p-11, -1 - 0x1p-11, 1 + 0x1p-11 + 0x1p-23, 1 + 0x1p-11 - 0x1p-23}),
            (Values{1, 1 + 0x1p-9, -1, 1 + 0x1p-10, 1}));
  EXPECT_EQ(stored(bf16, {1 + 0x1p-8, 1 + 0x3p-8, -1 - 0x1p-8, 1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-8 - 0x1p-23}),
            (Values{1, 1 + 0x1p-6, -1, 1 + 0x1p-7, 1}));
}

TEST(StoredHalfFloats, SubnormalNumbersAreKept) {
  EXPECT_EQ(stored(f16, {0x1p-24, 0x3p-25, 0x1p-25, 0x1.000002p-25, 0x1.ffcp-15, -0x1p-24}),
            (Values{0x1p-24, 0x1p-23, 0, 0x1p-24, 0x1p-14, -0x1p-24}));
  EXPECT_EQ(stored(bf16, {0x1p-133, 0x3p-134, 0x1p-134, 0x1.8p-127, -0x1p-133}),
            (Values{0x1p-133, 0x1p-132, 0, 0x1.8p-127, -0x1p-133}));
}

TEST(StoredHalfFloats, TheLargestIsStoredAndNothingBeyond) {
  EXPECT_EQ(stored(f16, {65504, -65504, 65519}), (Values{65504, -65504, 65504}));
  EXPECT_EQ(stored(bf16, {0x1.fep127, 0x1.fefffep127}), (Values{0x1.fep127, 0x1.fep127}));
  EXPECT_EQ(errorOf(f16, {65520}, {1, 1}),
            "stored weight: number out of range; expected one within f16, got 65520.000000");
  EXPECT_NE(errorOf(bf16, {0x1.ffp127}, {1, 1}), "");
}

// The scale of a row maps its largest magnitude to 127.
TEST(StoredIntegers, RowsHaveScalesOfTheirOwn) {
  EXPECT_EQ(stored(i8, {127, 1.4, -0.5, 254, 3.1, 1}, {2, 3}, 0), (Values{127, 1, 0, 254, 4, 0}));
}

TEST(StoredIntegers, ColumnsHaveScalesOfTheirOwn) {
  EXPECT_EQ(stored(i8, {127, 254, 1.4, 3.1, -0.6, -1.2}, {3, 2}, 1), (Values{127, 254, 1, 4, -1, -2}));
}

/// Quantises each index of the dimension as a tensor of one row.
Values byIndex(const Values &values, const TensorShape &shape, std::size_t dim) {
  Values result(values.size());
  for (std::int64_t index = 0; index < shape[dim]; ++index) {
    Values row;
    std::vector<std::size_t> places;
    for (std::size_t flat = 0; flat < values.size(); ++flat) {
      std::size_t rest = flat;
      std::int64_t at = 0;
      for (std::size_t i = shape.size(); i-- > dim; rest /= static_cast<std::size_t>(shape[i]))
        at = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[i]));
      if (at != index)
        continue;
      row.push_back(values[flat]);
      places.push_back(flat);
    }
    row = stored(i8, row);
    for (std::size_t i = 0; i < row.size(); ++i)
      result[places[i]] = row[i];
  }
  return result;
}

TEST(StoredIntegers, ScalesAreAlongAnyDimension) {
  const Values matrix = draw(35, 6, 1), images = draw(3 * 5 * 2 * 4, 6, 2);
  for (std::size_t dim : {0u, 1u})
    EXPECT_EQ(stored(i8, matrix, {5, 7}, static_cast<std::int64_t>(dim)), byIndex(matrix, {5, 7}, dim));
  for (std::size_t dim : {0u, 1u, 2u, 3u})
    EXPECT_EQ(stored(i8, images, {3, 5, 2, 4}, static_cast<std::int64_t>(dim)), byIndex(images, {3, 5, 2, 4}, dim));
}

TEST(StoredIntegers, MidpointsGoToTheEvenNeighbour) {
  EXPECT_EQ(stored(i8, {127, 0.5, 1.5, 2.5, -0.5, -1.5, 125.5, -126.5}), (Values{127, 0, 2, 2, 0, -2, 126, -126}));
}

// A little below 5.5, which is equal to 5.5 in f32.
TEST(StoredIntegers, AQuotientIsOneOfF32) {
  const double scale = 1 + 0x1p-23;
  EXPECT_LT((5.5 + 0x1p-21) / scale, 5.5);
  EXPECT_EQ(stored(i8, {127 + 0x1p-16, 5.5 + 0x1p-21}), (Values{127 + 0x1p-16, static_cast<float>(6 * scale)}));
}

TEST(StoredIntegers, ZerosAreZeros) {
  EXPECT_EQ(stored(i8, {0, -0.0, 0, 0, 127, 1}, {3, 2}, 0), (Values{0, 0, 0, 0, 127, 1}));
  // A scale of 2^-149 * 63 / 127 rounds to 0.
  EXPECT_EQ(stored(i8, {63 * 0x1p-149, -0x1p-149}), (Values{0, 0}));
}

TEST(StoredIntegers, ASubnormalScaleIsClampedTo127Steps) {
  // 180 / 127 rounds to 1 in units of 2^-149.
  EXPECT_EQ(stored(i8, {180 * 0x1p-149, -130 * 0x1p-149, -5 * 0x1p-149}),
            (Values{127 * 0x1p-149, -127 * 0x1p-149, -5 * 0x1p-149}));
}

TEST(StoredIntegers, WhatIsOnTheGridIsExact) {
  for (double scale : {1.0, 0x1p-20, 0x1.8p3, 0x1.2345p-7, 0x1p100}) {
    Values grid;
    for (int q = -127; q <= 127; ++q)
      grid.push_back(q * scale);
    EXPECT_EQ(stored(i8, grid), grid) << scale;
  }
}

TEST(StoredIntegers, AreWithinHalfAStepAndNever128StepsBelow) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Values values = draw(257, 1 + static_cast<int>(seed % 12), seed), rounded = stored(i8, values);
    double most = 0;
    for (double value : values)
      most = std::max(most, std::abs(value));
    const double scale = static_cast<float>(most / 127);
    std::set<double> steps;
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::abs(rounded[i] - values[i]), scale / 2 * (1 + 0x1p-15)) << values[i] << ", seed " << seed;
      ASSERT_EQ(rounded[i], static_cast<float>(rounded[i]));
      const double step = std::round(rounded[i] / scale);
      ASSERT_EQ(rounded[i], static_cast<float>(step * scale));
      steps.insert(std::abs(step));
    }
    ASSERT_EQ(*steps.rbegin(), 127) << "seed " << seed;
  }
}

TEST(StoredHalfFloats, ValuesAreTheNearestAndStay) {
  for (ElementType element : {f16, bf16})
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Values values = draw(500, 30, seed), rounded = stored(element, values);
      EXPECT_EQ(stored(element, rounded), rounded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int exponent = std::max(std::ilogb(values[i]), info(element).least_exponent());
        ASSERT_LE(std::abs(rounded[i] - values[i]), std::ldexp(0.5, exponent - info(element).digits + 1)) << values[i];
      }
    }
}

TEST(StoredSmallFloats, TheLargestMagnitudeIs448) {
  // The scale is 1: ties go to even numbers, and subnormal ones are multiples of 2^-9.
  EXPECT_EQ(stored(ElementType::f8e4m3, {448, 17, 19, -0x1.1p-9, 0x1.8p-9, 0x1p-10, 432}, {1, 7}),
            (Values{448, 16, 20, -0x1p-9, 0x1p-8, 0, 448}));
  EXPECT_EQ(stored(ElementType::f8e4m3, {-896, 1}, {1, 2}), (Values{-896, 1}));
  EXPECT_EQ(stored(ElementType::f8e4m3, {0, 0}, {1, 2}), (Values{0, 0}));
}

TEST(StoredSmallFloats, ScalesOfGroupsArePowersOfTwo) {
  auto ofGroup = [](Values values) {
    values.resize(32);
    return values;
  };
  auto grouped = [](Values values) {
    roundToStored(values, {1, 32}, {ElementType::f4e2m1, 0, 32});
    return values;
  };
  // The scale is 1 for 4 to 8: 5 and 2.5 are ties, and 7 is more than the largest number.
  EXPECT_EQ(grouped(ofGroup({7, 5, 2.5, 0.25, 0.75, -3.5, 0.26})), ofGroup({6, 4, 2, 0, 1, -4, 0.5}));
  EXPECT_EQ(grouped(ofGroup({-1, 0.3125})), ofGroup({-1, 0.25}));
  EXPECT_EQ(grouped(ofGroup({0x1p-127, 0x1p-129})), ofGroup({0x1p-127, 0}));
  EXPECT_THROW(grouped(ofGroup({0x1.8p115})), std::runtime_error);
}

TEST(StoredWeights, WhatCannotBeStoredIsRefused) {
  for (ElementType element : {f16, bf16, i8})
    for (double value : {std::nan(""), HUGE_VAL, -HUGE_VAL})
      EXPECT_NE(errorOf(element, {1, value}, {1, 2}), "") << name_of(element) << " " << value;
  EXPECT_EQ(errorOf(ElementType::i32, {1}, {1, 1}),
            "stored weight: unsupported element type; expected f16, bf16, i8, i4, f8e4m3, f4e2m1, u4 or i6, got i32");
  EXPECT_EQ(errorOf(i8, {1, 2}, {1, 2}, 2),
            "stored weight: dimension of the scales out of range; expected one of the weight, got 2 of [1, 2]");
  EXPECT_EQ(errorOf(i8, {1, 2}, {1, 3}), "stored weight: wrong number of values; expected one for each element");
}

Values grouped(Values values, TensorShape shape, std::int64_t group, bool zero = false, std::int64_t dim = 0) {
  roundToStored(values, shape, {ElementType::i4, dim, group, zero});
  return values;
}

/// Returns 32 numbers: the given ones, then zeros.
Values ofGroup(Values values) {
  values.resize(32);
  return values;
}

TEST(StoredGroups, TheLargestMagnitudeIsEightSteps) {
  EXPECT_EQ(grouped(ofGroup({-8, 7.4, -3.5, 0.5, 1.5, -0.6}), {1, 32}, 32), ofGroup({-8, 7, -4, 0, 2, -1}));
  // of equal magnitudes the first determines the sign
  EXPECT_EQ(grouped(ofGroup({8, -7.4, -8}), {1, 32}, 32), ofGroup({8, -7, -7}));
}

TEST(StoredGroups, SixteenNumbersAroundTheZero) {
  // From -2 to 13; 0 is representable, whatever the smallest number is.
  EXPECT_EQ(grouped(ofGroup({-2, 13, 4.5, 5.5, 0.4}), {1, 32}, 32, true), ofGroup({-2, 13, 4, 6, 0}));
  EXPECT_EQ(grouped(ofGroup({30, 17}), {1, 32}, 32, true), ofGroup({30, 16}));
  EXPECT_EQ(grouped(ofGroup({-30, -17}), {1, 32}, 32, true), ofGroup({-30, -16}));
}

TEST(StoredGroups, ScalesAreOfF16) {
  const double scale = roundTo(ElementType::f16, 0.3 / 8), third = roundTo(ElementType::f32, 0.3);
  EXPECT_EQ(grouped(ofGroup({-third}), {1, 32}, 32), ofGroup({-8 * scale}));
  // Below half of the smallest f16 the scale is 0; slightly above it is the smallest f16.
  EXPECT_EQ(grouped(ofGroup({0x1p-22}), {1, 32}, 32), ofGroup({0}));
  EXPECT_EQ(grouped(ofGroup({-0x1.2p-22, 0x1p-24}), {1, 32}, 32), ofGroup({-4 * 0x1p-24, 0x1p-24}));
}

TEST(StoredGroups, EachGroupOfEachOutputByItself) {
  const Values values = draw(3 * 64 * 2, 6, 5);
  for (std::int64_t dim : {0, 1})
    for (bool zero : {false, true}) {
      const TensorShape shape = dim == 0 ? TensorShape{6, 64} : TensorShape{64, 6};
      const Values whole = grouped(values, shape, 32, zero, dim);
      for (std::size_t n = 0; n < 6; ++n)
        for (std::size_t first : {0u, 32u}) {
          auto at = [&](std::size_t k) { return dim == 0 ? n * 64 + k : k * 6 + n; };
          Values one, expected;
          for (std::size_t k = first; k < first + 32; ++k) {
            one.push_back(values[at(k)]);
            expected.push_back(whole[at(k)]);
          }
          EXPECT_EQ(grouped(one, {1, 32}, 32, zero), expected);
        }
    }
}

TEST(StoredGroups, WhatCannotBeIsSaid) {
  auto errorOf = [](Values values, const TensorShape &shape, std::int64_t group) -> std::string {
    try {
      grouped(std::move(values), shape, group);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf(Values(48), {1, 48}, 32),
            "stored weight: K is not divisible by the group; expected a multiple of 32, got 48");
  EXPECT_EQ(errorOf(ofGroup({0x1p18}), {1, 32}, 32), "");
  EXPECT_EQ(errorOf(ofGroup({0x1.000002p18}), {1, 32}, 32),
            "stored weight: number out of range; expected one within 2^18, got 262144.031250");
  EXPECT_NE(errorOf(ofGroup({std::nan("")}), {1, 32}, 32), "");
}

} // namespace
} // namespace kiln::interpreter
