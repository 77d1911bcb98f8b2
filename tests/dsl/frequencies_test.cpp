// SPDX-License-Identifier: Apache-2.0
//
// Frequencies of rotary positions, which the compiler of the spec computes: compared with libm, and with the formulas
// that published models use.
#include <kiln/dsl.h>

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace kiln {
namespace {

TEST(Frequencies, ArePowersOfTheBase) {
  for (double base : {1.5, 100.0, 10000.0, 500000.0, 1e6, 1e12}) {
    const auto ours = frequencies<128>(base);
    for (std::size_t i = 0; i < 64; ++i) {
      const double wanted = std::pow(base, -static_cast<double>(i) / 64);
      EXPECT_NEAR(ours.values[i], wanted, 2e-14 * wanted) << base << " " << i;
    }
    EXPECT_EQ(ours.amplitude, 1);
  }
}

TEST(Frequencies, AreConstantExpressions) {
  constexpr auto ours = frequencies<8>(10000);
  static_assert(ours.values[0] == 1 && ours.values[1] > 0.0999 && ours.values[1] < 0.1001);
  constexpr auto given = frequencies(std::array{0.5, 0.25, 3.0});
  static_assert(given.width == 6 && given.values[2] == 3);
}

TEST(Frequencies, AreScaledLinearly) {
  const auto plain = frequencies<16>(100), ours = plain.scaled(linear_scaling(4));
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_DOUBLE_EQ(ours.values[i], plain.values[i] / 4);
}

// The wavelengths of Llama 3.1: those up to 8192 / 4 are kept, those from 8192 on are divided by 8.
TEST(Frequencies, OfLlama3) {
  const auto plain = frequencies<128>(500000), ours = plain.scaled(llama3_scaling(8, 8192));
  std::size_t kept = 0, divided = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const double wave = 2 * std::numbers::pi / plain.values[i], smooth = (8192 / wave - 1) / 3;
    double wanted = (1 - smooth) * plain.values[i] / 8 + smooth * plain.values[i];
    if (wave < 8192.0 / 4)
      wanted = plain.values[i], ++kept;
    else if (wave > 8192)
      wanted = plain.values[i] / 8, ++divided;
    EXPECT_NEAR(ours.values[i], wanted, 1e-14 * wanted) << i;
  }
  EXPECT_EQ(kept, 29u);
  EXPECT_EQ(divided, 29u);
}

TEST(Frequencies, OfYarn) {
  const auto plain = frequencies<128>(10000), ours = plain.scaled(yarn_scaling(16, 4096)),
             exact = plain.scaled(yarn_scaling(16, 4096, {.attention_factor = 1.25, .truncates = false}));
  auto pair_of = [](double turns) { return 64 * std::log(4096 / (turns * 2 * std::numbers::pi)) / std::log(10000.0); };
  auto expect = [&](const auto &actual, double first, double last) {
    for (std::size_t i = 0; i < 64; ++i) {
      const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - first) / (last - first)));
      const double wanted = plain.values[i] * (1 - ramp) + plain.values[i] / 16 * ramp;
      EXPECT_NEAR(actual.values[i], wanted, 1e-13 * wanted) << i;
    }
  };
  expect(ours, std::floor(pair_of(32)), std::ceil(pair_of(1)));
  expect(exact, pair_of(32), pair_of(1));
  EXPECT_NEAR(ours.amplitude, 0.1 * std::log(16.0) + 1, 1e-15);
  EXPECT_EQ(exact.amplitude, 1.25);
}

TEST(Frequencies, OfLongRope) {
  constexpr LongRope<3> rope{
      .short_factors = {1, 1.5, 2}, .long_factors = {1, 10, 50}, .original = 4096, .longest = 131072};
  const auto plain = frequencies<6>(10000);
  const auto brief = plain.scaled(rope, 4096), deep = plain.scaled(rope, 4097);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(brief.values[i], plain.values[i] / rope.short_factors[i]);
    EXPECT_DOUBLE_EQ(deep.values[i], plain.values[i] / rope.long_factors[i]);
  }
  EXPECT_NEAR(brief.amplitude, std::sqrt(1 + std::log(32.0) / std::log(4096.0)), 1e-14);
  EXPECT_EQ(brief.amplitude, deep.amplitude);
  constexpr LongRope<3> stated{.short_factors = {1, 1, 1},
                               .long_factors = {1, 1, 1},
                               .original = 4096,
                               .attention_factor = 1.5,
                               .longest = 131072};
  EXPECT_EQ(plain.scaled(stated, 1).amplitude, 1.5);
  constexpr LongRope<3> same{.short_factors = {1, 1, 1}, .long_factors = {1, 1, 1}, .original = 4096, .longest = 4096};
  EXPECT_EQ(plain.scaled(same, 1).amplitude, 1);
}

TEST(Frequencies, OfSeveralAxes) {
  const auto text = frequencies<16>(100);
  EXPECT_EQ(text.sections({2, 3, 3}).axes, (std::array{0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(text.interleaved_sections({4, 2, 2}).axes, (std::array{0, 1, 2, 0, 1, 2, 0, 0}));
  EXPECT_EQ(text.sections({2, 3, 3}).values, text.values);
  EXPECT_EQ(text.sections({2, 3, 2}).axes[0], -1); // sinusoidal_c6
  EXPECT_EQ(text.sections({2, 3, 4}).axes[0], -1);
  const auto picture = axial_frequencies<12, 3>(100);
  EXPECT_EQ(picture.axes, (std::array{0, 0, 1, 1, 2, 2}));
  EXPECT_NEAR(picture.values[1], 0.1, 1e-15);
  EXPECT_EQ(picture.values[4], 1);
}

constexpr Dim T{"tokens", 1, 64};

// One operation for the angles, whatever their frequencies, and no copies of them.
struct Angles : Model {
  constexpr auto forward(Tensor<i32, T> at) const {
    constexpr auto scaled = frequencies<128>(500000).scaled(llama3_scaling(8, 8192));
    return outputs(sinusoidal(at, scaled), sinusoidal<64>(at), sinusoidal(expand<2, T>(at), axial_frequencies<8, 2>()));
  }
};

TEST(Frequencies, AreAttributesOfOneOperation) {
  const Graph graph = trace<Angles>();
  std::vector<const Node *> angles;
  for (const Node &node : graph.nodes)
    if (node.op == Op::sinusoidal)
      angles.push_back(&node);
    else
      EXPECT_TRUE(node.op == Op::input || node.op == Op::expand) << name_of(node.op);
  ASSERT_EQ(angles.size(), 3u);
  EXPECT_EQ(angles[0]->attributes.values.size(), 64u);
  EXPECT_TRUE(angles[0]->attributes.pair_axes.empty());
  EXPECT_TRUE(angles[1]->attributes.values.empty());
  EXPECT_EQ(angles[2]->attributes.pair_axes, (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(angles[2]->shape, (std::vector<Dim>{T, Dim(8)}));
}

} // namespace
} // namespace kiln
