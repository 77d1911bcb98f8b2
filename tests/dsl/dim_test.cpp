// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of extents, and how values print in messages.
#include <string>

#include <gtest/gtest.h>

#include "kiln/text.h"

namespace {

using kiln::Dim;

constexpr Dim B{"batch", 1, 8}, T{"tokens", 1, 512};

static_assert(Dim(3) == 3 && Dim(3).fixed() && Dim(3).min() == 3 && Dim(3).max() == 3);
static_assert(!T.fixed() && T.min() == 1 && T.max() == 512 && T.degree() == 1);
static_assert(T == Dim("tokens", 1, 512) && !(T == Dim("tokens", 1, 511)) && !(T == B));

// Sums.
static_assert((Dim(3) + 4) == 7 && (Dim(3) - 4) == -1);
static_assert((T + 1).min() == 2 && (T + 1).max() == 513 && (T + 1 - 1) == T);
static_assert((T + T) == 2 * T && (T - T) == 0 && (T - T).fixed() && (1 + T) == (T + 1));
static_assert((T + 3 * T + 2).max() == 4 * 512 + 2);

// Products: the symbols are sorted, so that the order of writing does not matter.
static_assert(B * T == T * B && (B * T).degree() == 2 && (B * T).max() == 4096);
static_assert((2 * T) * (3 * B) == 6 * (B * T) && (T * T).max() == 512 * 512);
static_assert(2 * (T + 1) == 2 * T + 2 && (0 * T) == 0 && (0 * T).fixed());

// The bounds of a falling extent.
static_assert((600 - T).min() == 88 && (600 - T).max() == 599);

// What has no form offset + factor * s0 * s1.
static_assert(!Dim::addable(B, T) && !Dim::multipliable(B * T, T) && !Dim::multipliable(T + 1, T));

std::string text(const auto &value) { return kiln::Text().put(value).data(); }

TEST(Dim, RejectsAtRunTimeWithTheRule) {
  auto message = [](auto compute) -> std::string {
    try {
      compute();
    } catch (const std::invalid_argument &error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message([] { return B + T; }), kiln::rules::dim_c4);
  EXPECT_EQ(message([] { return (T + 1) * T; }), kiln::rules::dim_c3);
  EXPECT_EQ(message([] { return Dim("tokens", 0, 4); }), kiln::rules::dim_c2);
  EXPECT_EQ(message([] { return Dim("tokens", 5, 4); }), kiln::rules::dim_c2);
}

TEST(Dim, Prints) {
  EXPECT_EQ(text(Dim(768)), "768");
  EXPECT_EQ(text(T), "tokens 1..512");
  EXPECT_EQ(text(2 * (B * T) + 1), "2*batch*tokens+1 3..8193");
  EXPECT_EQ(text(600 - T), "-1*tokens+600 88..599");
}

TEST(Text, PrintsNumbers) {
  EXPECT_EQ(text(std::int64_t{0}), "0");
  EXPECT_EQ(text(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(text(INT64_MAX), "9223372036854775807");
  EXPECT_EQ(text(1.5), "1.500000");
  EXPECT_EQ(text(-0.25), "-0.250000");
  EXPECT_EQ(text(1e30), "a number out of range");
}

TEST(Text, DropsWhatDoesNotFit) {
  kiln::Text long_text;
  for (int i = 0; i < 2000; ++i)
    long_text.put("x");
  EXPECT_EQ(long_text.size(), 1023u);
  EXPECT_EQ(std::string(long_text.data()).size(), 1023u);
}

} // namespace
