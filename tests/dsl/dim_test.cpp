// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of dimensions, and how values are printed in messages.
#include <string>

#include <gtest/gtest.h>

#include "kiln/text.h"

namespace {

using kiln::Dim;

constexpr Dim B{"batch", 1, 8}, T{"tokens", 1, 512};

static_assert(Dim(3) == 3 && Dim(3).fixed() && Dim(3).min() == 3 && Dim(3).max() == 3);
static_assert(!T.fixed() && T.min() == 1 && T.max() == 512 && T.degree() == 1);
static_assert(T == Dim("tokens", 1, 512) && !(T == Dim("tokens", 1, 511)) && !(T == B));
static_assert(T == Dim("tokens", 1, 512) && !(T == Dim("tokenz", 1, 512)));

// Sums.
static_assert((Dim(3) + 4) == 7 && (Dim(3) - 4) == -1);
static_assert((T + 1).min() == 2 && (T + 1).max() == 513 && (T + 1 - 1) == T);
static_assert((T + T) == 2 * T && (T - T) == 0 && (T - T).fixed() && (1 + T) == (T + 1));
static_assert((T + 3 * T + 2).max() == 4 * 512 + 2);

// Products: the symbols are sorted, so that the order of operands does not matter.
static_assert(B * T == T * B && (B * T).degree() == 2 && (B * T).max() == 4096);
static_assert((2 * T) * (3 * B) == 6 * (B * T) && (T * T).max() == 512 * 512);
static_assert(2 * (T + 1) == 2 * T + 2 && (0 * T) == 0 && (0 * T).fixed());

// The bounds of a decreasing dimension.
static_assert((600 - T).min() == 88 && (600 - T).max() == 599);

// Sums of two symbols: the terms are sorted, and equal ones are one term.
constexpr Dim S{"source", 1, 9};
static_assert(B + T == T + B && (B + T).terms() == 2 && (B + T).min() == 2 && (B + T).max() == 520);
static_assert((B + T) - T == B && (B + T) - B == T && (B + T) - (T + B) == 0 && !(B + T == B + S));
static_assert(2 * (B + T + 3) == 2 * T + 6 + B + B && (B + 2 * T) + (B - 2 * T) == 2 * B);
static_assert((B - T).min() == 1 - 512 && (B - T).max() == 7 && (B * T + S).degree() == 2);
static_assert((B + T) * S == S * T + B * S && (T + 1) * T == T * T + T && (T - 1) * (T + 1) == T * T - 1);
static_assert((B + T) * (B - T) == B * B - T * T && (B * T + S + 7).term(0) == B * T && (B + T).term(1) == T);
static_assert((B * T + S + 7).value([](const kiln::Symbol &symbol) { return symbol.max; }) == 8 * 512 + 9 + 7);
static_assert((2 * T + 4 * B).divisible(2) && (2 * T + 4 * B).divided(2) == T + 2 * B && !(T + 2 * B).divisible(2));

// Expressions of more terms, or of more symbols in a term.
static_assert(Dim::addable(B, T) && !Dim::addable(B + T, S) && Dim::addable(B + T, S - T));
static_assert(Dim::multipliable(T + 1, T) && !Dim::multipliable(B * T, T) && !Dim::multipliable(B + T, B + T));

std::string text(const auto &value) { return kiln::Text().put(value).data(); }

// An invalid dimension has its reason, and counts as 1 until a model uses it; the first reason is kept.
using kiln::Flaw;
static_assert((B + T + S).flaw == Flaw::sum && (B + T + S).fixed() && (B + T + S) != Dim(1));
static_assert((T * T * T).flaw == Flaw::product && (B * T * S - 1).flaw == Flaw::product);
static_assert(((B + T) * (S + 1)).flaw == Flaw::product && ((B + T) * (B * T)).flaw == Flaw::product);
static_assert(Dim("tokens", 0, 4).flaw == Flaw::bounds && Dim("tokens", 5, 4).flaw == Flaw::bounds);
static_assert(Dim("context", T + 1, 600).flaw == Flaw::least && Dim("context", T, 511).flaw == Flaw::least);
static_assert(Dim("context", B + T, 600).flaw == Flaw::least && (2 * (B + T + S)).flaw == Flaw::sum);
// Every number is within 32 bits.
constexpr std::int64_t most = 2147483647;
static_assert(Dim(most).flaw == Flaw::none && Dim(-most).flaw == Flaw::none);
static_assert(Dim(most + 1).flaw == Flaw::size && Dim(INT64_MIN).flaw == Flaw::size &&
              (Dim(most) + 1).flaw == Flaw::size);
static_assert(Dim("tokens", 1, most).flaw == Flaw::none && Dim("tokens", 1, most + 1).flaw == Flaw::size);
static_assert((T * most).flaw == Flaw::size && (Dim("a", 1, most) * Dim("b", 1, most) * most).flaw == Flaw::size);
static_assert(Dim(most) * 2 - most != Dim(most));

TEST(Dim, Prints) {
  EXPECT_EQ(text(Dim(768)), "768");
  EXPECT_EQ(text(T), "tokens 1..512");
  EXPECT_EQ(text(2 * (B * T) + 1), "2*batch*tokens+1 3..8193");
  EXPECT_EQ(text(600 - T), "-1*tokens+600 88..599");
  EXPECT_EQ(text(B + T), "batch+tokens 2..520");
  EXPECT_EQ(text(2 * (B * T) - 3 * S + 1), "2*batch*tokens-3*source+1 -24..8190");
  EXPECT_EQ(text(B + T + S), "batch and tokens and source");
  EXPECT_EQ(text(Dim("tokens", 5, 4)), "tokens 5..4");
  EXPECT_EQ(text(Dim(most + 1)), "2147483648");
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
