// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kiln::testing {
namespace {

double ulpsOf(double actual, double expected) { return oracle::errorOf(actual, expected, {0, 0}).ulps; }

TEST(Errors, LibmvecAgreesWithLibm) {
  std::vector<float> numbers = sampleFloats(16381);
  numbers.resize(numbers.size() / 4 * 4);
  for (std::size_t f = 0; f < std::size(testedFunctions); ++f) {
    const std::vector<double> lanes = computeInLanes(f, numbers);
    if (lanes.empty())
      GTEST_SKIP() << "libmvec is not available, or this CPU has no AVX2";
    Worst worst;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      worst.include(oracle::errorOf(lanes[i], computeInF64(f, numbers[i]), {0, 0}), numbers[i], lanes[i]);
    EXPECT_LE(worst.ulps, 1e-7) << testedFunctions[f].name << "(" << worst.at << ") is " << worst.value;
  }
}

TEST(Errors, AreUnitsInTheLastPlace) {
  const double infinity = HUGE_VAL, nan = std::nan(""), largest = std::numeric_limits<float>::max();
  EXPECT_EQ(ulpsOf(1 + 0x1p-23, 1), 1);
  EXPECT_EQ(ulpsOf(1, 1 + 0x1p-24), 0.5);
  EXPECT_EQ(ulpsOf(1, 1 - 0x1p-24), 1);
  EXPECT_EQ(ulpsOf(-0x1p-149, 0), 1);
  EXPECT_EQ(ulpsOf(0x1p-126, 0x1p-127), 0x1p22);
  EXPECT_EQ(ulpsOf(largest, infinity), 1);
  EXPECT_EQ(ulpsOf(infinity, 1e300), 0);
  EXPECT_EQ(ulpsOf(-infinity, infinity), 0x1p25);
  EXPECT_EQ(ulpsOf(nan, nan), 0);
  EXPECT_EQ(ulpsOf(nan, 1), infinity);
  EXPECT_EQ(ulpsOf(1, nan), infinity);
  const auto [ulps, absolute] = oracle::errorOf(1 + 0x1p-21, 1.0, {3, 0x1p-23});
  EXPECT_EQ(ulps, 3);
  EXPECT_EQ(absolute, 0x1p-23);
}

} // namespace
} // namespace kiln::testing
