// SPDX-License-Identifier: Apache-2.0
//
// Weights that are quantised in blocks, or to bytes in groups: hand-computed results of the rounding of dsl/SPEC.md.
#include "compiler/interpreter/Storage.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::interpreter {
namespace {

using Numbers = std::vector<double>;

/// Quantises numbers of one output in groups of this size.
Numbers inGroups(ElementType element, std::int64_t group, Numbers numbers) {
  roundToStored(numbers, {1, static_cast<std::int64_t>(numbers.size())}, {element, 0, group});
  return numbers;
}

/// Returns `count` numbers: those of each group, then zeros.
Numbers groupsOf(std::size_t count, std::size_t group, const std::vector<Numbers> &groups) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < groups.size(); ++i)
    std::copy(groups[i].begin(), groups[i].end(), numbers.begin() + static_cast<std::ptrdiff_t>(i * group));
  return numbers;
}

std::string refusalOf(ElementType element, std::int64_t group, const Numbers &numbers) {
  try {
    inGroups(element, group, numbers);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

TEST(StoredBlocks, Int8InGroupsHasScalesOfF16) {
  EXPECT_EQ(inGroups(ElementType::i8, 32, groupsOf(64, 32, {{127, 1.4, -0.5, 2.5}, {254, 3.1}})),
            groupsOf(64, 32, {{127, 1, 0, 2}, {254, 4}}));
  const double scale = roundTo(ElementType::f16, roundTo(ElementType::f32, 100.0 / 127));
  EXPECT_EQ(inGroups(ElementType::i8, 32, groupsOf(32, 32, {{100, -scale}})),
            groupsOf(32, 32, {{127 * scale, -scale}}));
  // Below half of the smallest f16 the scale is 0.
  EXPECT_EQ(inGroups(ElementType::i8, 32, groupsOf(32, 32, {{0x1p-19}})), Numbers(32));
}

TEST(StoredBlocks, Fp8InGroups) {
  EXPECT_EQ(inGroups(ElementType::f8e4m3, 128, groupsOf(256, 128, {{448, 17, 19, 0x1p-10}, {-896, 34, -38}})),
            groupsOf(256, 128, {{448, 16, 20, 0}, {-896, 32, -40}}));
}

// The outer scale is 1, since the largest number is 6 times 448. A scale of 1/6 is rounded to 11/64.
TEST(StoredBlocks, Nvfp4ScalesAreE4m3OfTheOuterScale) {
  EXPECT_EQ(inGroups(ElementType::f4e2m1, 16, groupsOf(48, 16, {{2688, 224, 100}, {6, 5, -0.3}, {1, -0.1}})),
            groupsOf(48, 16, {{2688, 224, 0}, {6, 4, -0.5}, {1.03125, -0.0859375}}));
  EXPECT_EQ(inGroups(ElementType::f4e2m1, 16, Numbers(32)), Numbers(32));
}

// The outer scale and the outer minimum are 1.
TEST(StoredBlocks, Q4KHasStepsAndOffsets) {
  EXPECT_EQ(inGroups(ElementType::u4, 32, groupsOf(256, 32, {{882, -63}, {-10, 20, 0, 1, 3.1}, {5, 10, 0.4}, {100}})),
            groupsOf(256, 32, {{882, -63}, {-10, 20, 0, 2, 4}, {5, 10, 0}, {98}}));
}

// The outer scale is 1, and the scale of the second group, of -3, is too small for its number.
TEST(StoredBlocks, Q6KHasSignedScales) {
  EXPECT_EQ(inGroups(ElementType::i6, 16, groupsOf(256, 16, {{4096, 3968, 64}, {100}, {-32, 31, 2.5, 0.5}})),
            groupsOf(256, 16, {{4096, 3968, 0}, {96}, {-32, 31, 2, 0}}));
}

TEST(StoredBlocks, OutputsAreApart) {
  Numbers numbers(4 * 256);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::ldexp(static_cast<double>(i * 37 % 101) - 50, static_cast<int>(i / 256));
  for (auto [element, group] : {std::pair(ElementType::i8, 32),
                                {ElementType::f8e4m3, 128},
                                {ElementType::f4e2m1, 16},
                                {ElementType::u4, 32},
                                {ElementType::i6, 16}}) {
    Numbers columns(numbers.size());
    for (std::size_t n = 0; n < 4; ++n)
      for (std::size_t k = 0; k < 256; ++k)
        columns[k * 4 + n] = numbers[n * 256 + k];
    roundToStored(columns, {256, 4}, {element, 1, group});
    for (std::size_t n = 0; n < 4; ++n) {
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(n * 256);
      const Numbers alone = inGroups(element, group, Numbers(first, first + 256));
      for (std::size_t k = 0; k < 256; ++k)
        EXPECT_EQ(columns[k * 4 + n], alone[k]) << name_of(element) << " " << n << " " << k;
    }
  }
}

TEST(StoredBlocks, WhatCannotBeStoredIsSaid) {
  EXPECT_EQ(refusalOf(ElementType::u4, 32, Numbers(96)),
            "stored weight: K is not divisible by the group; expected a multiple of 256, got 96");
  EXPECT_EQ(refusalOf(ElementType::i6, 16, Numbers(16)),
            "stored weight: K is not divisible by the group; expected a multiple of 256, got 16");
  EXPECT_EQ(refusalOf(ElementType::u4, 64, Numbers(256)),
            "stored weight: unsupported groups; expected those of a storage format, got 64");
  EXPECT_EQ(refusalOf(ElementType::u4, 32, groupsOf(256, 32, {{0x1.8p21}})),
            "stored weight: number out of range; expected one within 2^21, got 3145728.000000");
  EXPECT_EQ(refusalOf(ElementType::i8, 32, groupsOf(32, 32, {{0x1p22}})), "");
  EXPECT_NE(refusalOf(ElementType::f4e2m1, 16, groupsOf(32, 16, {{1}, {std::nan("")}})), "");
}

} // namespace
} // namespace kiln::interpreter
