// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include KILN_OPS_HEADER(ops_attention)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_attention, entry)

namespace kiln::testing {
namespace {

auto library() { return KILN_OPS_LIBRARY(ops_attention, OPS_ATTENTION); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_attention)> only(library());
  return only;
}

/// Scores of about 10 cost a few more units in the last place in the exponential.
constexpr double tolerance = 4e-6;

TEST(Attention, Self) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 30});
    Expected one(attention(x, x, x, 1), tolerance), three(attention(x, x, x, 3), tolerance),
        fifteen(attention(x, x, x, 15), tolerance);
    runAndCompare(session(), ENTRY(self), e.batch, e.rows, Given(x), one, three, fifteen);
  }
}

TEST(Attention, Cross) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}), v = random({e.batch, e.others, 14});
    Expected y(attention(q, k, v, 2), tolerance);
    runAndCompare(session(), ENTRY(cross), e.batch, e.rows, e.others, Given(q), Given(k), Given(v), y);
  }
}

TEST(Attention, JoinsTwoDynamicDimensions) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 24}), y = random({e.batch, e.others, 24}), both = concat({y, x}, 1);
    Expected all(attention(both, both, both, 2), tolerance),
        causal(attention(x, both, both, 3, {.causal = true}), tolerance);
    runAndCompare(session(), ENTRY(joined), e.batch, e.rows, e.others, Given(x), Given(y), all, causal);
  }
}

// With more keys than queries, the last query attends to the last key.
TEST(Attention, Causal) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    const Shape shape{e.batch, e.rows, 24};
    Array q = random(shape), k = random(shape), v = random(shape), longer = random({e.batch, e.rows + 5, 24});
    Expected y(attention(q, k, v, 2, {.causal = true}), tolerance),
        z(attention(q, longer, longer, 2, {.causal = true}), tolerance);
    runAndCompare(session(), ENTRY(causal), e.batch, e.rows, Given(q), Given(k), Given(v), Given(longer), y, z);
  }
}

TEST(Attention, Windows) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows, 24}),
          longer = random({e.batch, e.rows + 5, 12}), lengths = randomIntegers({e.batch}, 1, e.rows + 1);
    Expected one(attention(q, k, k, 2, {.causal = true, .window = 1}), tolerance),
        seven(attention(q, longer, longer, 4, {.causal = true, .window = 7, .keyHeads = 2}), tolerance),
        all(attention(q, k, k, 2, {.causal = true, .window = 1000, .lengths = &lengths}), tolerance);
    Array seen = attentionScores(q, k, 2, {.causal = true, .window = 3});
    for (double &score : seen.values)
      score = std::isinf(score) ? -3e38 : score;
    Expected scores(std::move(seen), sumTolerance, 1);
    runAndCompare(session(), ENTRY(windows), e.batch, e.rows, Given(q), Given(k), Given(longer), GivenIntegers(lengths),
                  one, seven, all, scores);
  }
}

TEST(Attention, LimitsScores) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows, 24}), mask = random({e.rows, e.rows});
    Expected one(attention(q, k, k, 2, {.softcap = 2}), tolerance),
        all(attention(q, k, k, 3, {.causal = true, .window = 5, .softcap = 0.5, .mask = &mask}), tolerance),
        scores(attentionScores(q, k, 2, {.softcap = 3, .mask = &mask}), sumTolerance, 1);
    runAndCompare(session(), ENTRY(caps), e.batch, e.rows, Given(q), Given(k), Given(mask), one, all, scores);
  }
}

TEST(Attention, Sinks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows, 24}), two = random({2}), four = random({4}),
          longer = random({e.batch, e.rows + 5, 12}), mask = random({e.rows, e.rows + 5}),
          lengths = randomIntegers({e.batch}, 0, e.rows + 6);
    two.values[0] = 50; // far above the scores
    Expected one(attention(q, k, k, 2, {.sinks = &two}), tolerance), all(attention(q, longer, longer, 4,
                                                                                   {.causal = true,
                                                                                    .window = 1000,
                                                                                    .softcap = 3,
                                                                                    .mask = &mask,
                                                                                    .lengths = &lengths,
                                                                                    .sinks = &four,
                                                                                    .keyHeads = 2}),
                                                                         tolerance);
    runAndCompare(session(), ENTRY(sinks), e.batch, e.rows, Given(q), Given(k), Given(two), Given(four), Given(longer),
                  Given(mask), GivenIntegers(lengths), one, all);
  }
}

TEST(Attention, SinkOfOneQuery) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, 1, 24}), k = random({e.batch, e.others, 24}), two = random({2});
    Expected y(attention(q, k, k, 2, {.sinks = &two}), tolerance);
    runAndCompare(session(), ENTRY(sink_of_one), e.batch, e.others, Given(q), Given(k), Given(two), y);
  }
}

TEST(Attention, SinksFarAboveTheScoresLeaveNothing) {
  const Extents e = allExtents()[0];
  Array two = random({2});
  two.values = {85, 1000};
  Given queries(random({e.batch, 1, 24})), keys(random({e.batch, e.others, 24})), sinks(two);
  Output<float> y(static_cast<std::size_t>(e.batch * 24));
  session().runWith({1}, ENTRY(sink_of_one), e.batch, e.others, queries, keys, sinks, y);
  for (const float value : y.values())
    EXPECT_LE(std::fabs(value), 1e-32);
}

TEST(Attention, HeadMasks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}),
          all = random({e.batch, 2, e.rows, e.others}), keys = random({1, 3, 1, e.others});
    Expected a(attention(q, k, k, 2, {.mask = &all}), tolerance), b(attention(q, k, k, 3, {.mask = &keys}), tolerance),
        c(attentionScores(q, k, 2, {.mask = &all}), sumTolerance, 1);
    runAndCompare(session(), ENTRY(head_masks), e.batch, e.rows, e.others, Given(q), Given(k), Given(all), Given(keys),
                  a, b, c);
  }
}

TEST(Attention, OfTheLastRowsOfAContext) {
  for (const Extents &e : allExtents())
    for (std::int64_t context : {e.rows, e.rows + 1, std::int64_t{53}}) {
      KILN_TRACE_EXTENTS(e);
      Array q = random({e.batch, e.rows, 24}), k = random({e.batch, context, 24});
      Expected y(attention(q, k, k, 2, {.causal = true}), tolerance);
      runAndCompare(session(), ENTRY(context), e.batch, e.rows, context, Given(q), Given(k), y);
    }
}

TEST(Attention, OfAWindowThatCoversAll) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, 5, 5, 12}), rows = reshaped(x, {e.batch, 25, 12});
    Expected window(attention(rows, rows, rows, 3, {}), tolerance),
        whole(attention(rows, rows, rows, 3, {}), tolerance);
    runAndCompare(session(), ENTRY(window_of_all), e.batch, Given(x), window, whole);
  }
}

// A third of the pairs is masked, and all keys of some queries, whose results are 0.
TEST(Attention, Masks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    auto mask = [](const Shape &shape) {
      Array values = random(shape);
      for (std::size_t i = 0; i < values.values.size(); ++i)
        if (generator()() % 3 == 0 || static_cast<std::int64_t>(i) / shape.back() % 4 == 3)
          values.values[i] = -std::numeric_limits<double>::infinity();
      return values;
    };
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}), pairs = mask({e.rows, e.others}),
          keys = mask({1, e.others}), all = mask({e.batch, e.rows, e.others});
    Expected a(attention(q, k, k, 2, {.mask = &pairs}), tolerance),
        b(attention(q, k, k, 2, {.mask = &keys}), tolerance), c(attention(q, k, k, 2, {.mask = &all}), tolerance);
    runAndCompare(session(), ENTRY(masks), e.batch, e.rows, e.others, Given(q), Given(k), Given(pairs), Given(keys),
                  Given(all), a, b, c);
  }
}

// Lengths from 0, for which the result is 0, to all keys.
TEST(Attention, Padded) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}),
          lengths = randomIntegers({e.batch}, 0, e.others + 1);
    lengths.values[0] = 0;
    Expected y(attention(q, k, k, 3, {.lengths = &lengths}), tolerance);
    runAndCompare(session(), ENTRY(padded), e.batch, e.rows, e.others, Given(q), Given(k), GivenIntegers(lengths), y);
  }
}

TEST(Attention, Distances) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows + 5, 24}), one = random({e.rows, 24}),
          slopes = random({2}), table = random({7, 3});
    const double published[] = {1.0 / 16, 1.0 / 256, 1.0 / 4}; // two heads, and the first of four
    auto distance = [](const Index &at, std::int64_t offset) {
      return static_cast<double>(at.back() - at[at.size() - 2] - offset);
    };
    Array a = generate({1, 3, e.rows, e.rows + 5},
                       [&](const Index &at) { return -published[at[1]] * std::abs(distance(at, 5)); }),
          b = generate({2, e.rows, e.rows},
                       [&](const Index &at) { return -slopes.at({at[0]}) * std::abs(distance(at, 0)); }),
          c = generate({1, 3, e.rows, e.rows + 5}, [&](const Index &at) {
            return table.at({static_cast<std::int64_t>(std::clamp(distance(at, 5), -3.0, 3.0)) + 3, at[1]});
          });
    Expected x(attention(q, k, k, 3, {.causal = true, .mask = &a}), tolerance),
        y(attention(one, one, one, 2, {.mask = &b}), tolerance), z(attention(q, k, k, 3, {.mask = &c}), tolerance);
    runAndCompare(session(), ENTRY(distances), e.batch, e.rows, Given(q), Given(k), Given(one), Given(slopes),
                  Given(table), x, y, z);
  }
}

// Some documents are empty, and rows follow the last one.
TEST(Attention, Documents) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows + 5, 24}), one = random({e.rows, 24}),
          lengths = randomIntegers({e.batch, 3}, 0, e.rows / 2 + 3), two = randomIntegers({2}, 0, e.rows);
    two.values[0] = 1;
    auto numberOf = [](const Array &lengths, std::int64_t sequence, std::int64_t row) {
      int number = 0;
      double end = 0;
      for (std::int64_t i = 0; i < lengths.shape.back(); ++i) {
        end += lengths.values[static_cast<std::size_t>(sequence * lengths.shape.back() + i)];
        number += end <= static_cast<double>(row);
      }
      return number;
    };
    constexpr double none = -std::numeric_limits<double>::infinity();
    Array a = generate({e.batch, e.rows, e.rows + 5},
                       [&](const Index &at) {
                         return numberOf(lengths, at[0], at[1] + 5) == numberOf(lengths, at[0], at[2]) ? 0 : none;
                       }),
          b = generate({e.rows, e.rows},
                       [&](const Index &at) { return numberOf(two, 0, at[0]) == numberOf(two, 0, at[1]) ? 0 : none; });
    Expected x(attention(q, k, k, 3, {.causal = true, .window = 4, .mask = &a}), tolerance),
        y(attention(one, one, one, 2, {.mask = &b}), tolerance);
    runAndCompare(session(), ENTRY(documents), e.batch, e.rows, Given(q), Given(k), Given(one), GivenIntegers(lengths),
                  GivenIntegers(two), x, y);
  }
}

TEST(Attention, Scaled) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 24}, -1, 1);
    Expected flat(attention(x, x, x, 2, {.scale = 0.1}), tolerance),
        sharp(attention(x, x, x, 2, {.scale = 2.5}), tolerance);
    runAndCompare(session(), ENTRY(scaled), e.batch, e.rows, Given(x), flat, sharp);
  }
}

TEST(Attention, Together) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.rows, 24}), mask = random({e.rows, e.rows}),
          lengths = randomIntegers({e.batch}, 0, e.rows + 1);
    Expected y(attention(q, k, k, 2, {.scale = 0.5, .causal = true, .mask = &mask, .lengths = &lengths}), tolerance);
    runAndCompare(session(), ENTRY(together), e.batch, e.rows, Given(q), Given(k), Given(mask), GivenIntegers(lengths),
                  y);
  }
}

TEST(Attention, Ranks) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array one = random({e.rows, 16}), four = random({e.batch, 2, e.rows, 16});
    Expected x(attention(one, one, one, 2), tolerance), y(attention(four, four, four, 2), tolerance);
    runAndCompare(session(), ENTRY(ranks), e.batch, e.rows, Given(one), Given(four), x, y);
  }
}

TEST(Attention, Wide) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.rows, 128}), k = random({e.others, 128}), v = random({e.others, 128});
    Expected y(attention(q, k, v, 2), tolerance);
    runAndCompare(session(), ENTRY(wide), e.rows, e.others, Given(q), Given(k), Given(v), y);
  }
}

// Scores in the hundreds: a softmax without subtraction of the maximum would overflow.
TEST(Attention, OfLargeScores) {
  Array q = randomIntegers({5, 128}, -8, 9), k = randomIntegers({9, 128}, -8, 9), v = random({9, 128});
  Expected y(attention(q, k, v, 2), 1e-4);
  runAndCompare(session(), ENTRY(wide), std::int64_t{5}, std::int64_t{9}, Given(q), Given(k), Given(v), y);
}

TEST(Attention, Grouped) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 48}), k = random({e.batch, e.others, 16}), v = random({e.batch, e.others, 10}),
          one = random({e.batch, e.others, 8}), lengths = randomIntegers({e.batch}, 0, e.others + 1);
    Expected y(attention(q, k, v, 6, {.keyHeads = 2}), tolerance),
        z(attention(q, one, one, 6, {.lengths = &lengths, .keyHeads = 1}), tolerance);
    runAndCompare(session(), ENTRY(grouped), e.batch, e.rows, e.others, Given(q), Given(k), Given(v), Given(one),
                  GivenIntegers(lengths), y, z);
  }
}

TEST(Attention, Scores) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}),
          grouped = random({e.batch, e.others, 12}), mask = random({e.rows, e.others});
    Expected a(attentionScores(q, k, 2, {.mask = &mask}), sumTolerance, 1),
        b(attentionScores(q, grouped, 4, {.scale = 0.7, .keyHeads = 2}), sumTolerance, 1);
    runAndCompare(session(), ENTRY(scores), e.batch, e.rows, e.others, Given(q), Given(k), Given(grouped), Given(mask),
                  a, b);
  }
}

// Masked keys have an attention weight of exactly 0, also where these are all keys.
TEST(Attention, Weights) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 24}), k = random({e.batch, e.others, 24}),
          longer = random({e.batch, e.rows + 5, 12}), mask = random({e.batch, e.rows, e.others}),
          lengths = randomIntegers({e.batch}, 0, e.others + 1);
    for (std::size_t i = 0; i < mask.values.size(); ++i)
      if (i % 3 == 1 || static_cast<std::int64_t>(i) / e.others % 3 == 2)
        mask.values[i] = -std::numeric_limits<double>::infinity();
    Expected a(attentionWeights(attentionScores(q, k, 1, {.mask = &mask})), tolerance),
        b(attentionWeights(attentionScores(q, k, 3, {.lengths = &lengths})), tolerance),
        c(attentionWeights(attentionScores(q, longer, 4, {.causal = true, .keyHeads = 2})), tolerance);
    runAndCompare(session(), ENTRY(weights), e.batch, e.rows, e.others, Given(q), Given(k), Given(longer), Given(mask),
                  GivenIntegers(lengths), a, b, c);
    const Array exact = attentionScores(q, k, 3, {.lengths = &lengths});
    for (std::size_t i = 0; i < exact.values.size(); ++i)
      if (std::isinf(exact.values[i])) {
        EXPECT_EQ(b.values()[i], 0);
      }
  }
}

// Lengths outside of [0, 3] for three keys, in attention and in attention weights.
TEST(Attention, RefusesLengthsBeyondTheKeys) {
  std::vector<std::byte> arena(1 << 22);
  auto *aligned = reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(arena.data()) + 4095) / 4096 * 4096);
  std::vector<float> x(288), y(48), a(6), b(18), c(48);
  const std::int32_t wrong[][2] = {{1, 4}, {-1, 3}};
  for (const auto &n : wrong) {
    kiln_error_t error{};
    kiln_call_t call{aligned, arena.size() - 4096, nullptr, &error};
    EXPECT_EQ(ENTRY(padded)(session().get(), &call, 2, 1, 3, x.data(), x.data(), n, y.data()), KILN_INDEX_OUT_OF_RANGE)
        << error.message;
    EXPECT_EQ(ENTRY(weights)(session().get(), &call, 2, 1, 3, x.data(), x.data(), x.data(), x.data(), n, a.data(),
                             b.data(), c.data()),
              KILN_INDEX_OUT_OF_RANGE)
        << error.message;
  }
}

TEST(Attention, WithItsWeights) {
  const Array qkv = weightOf(library().weights, "qkv");
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 24}), projected = linear(x, qkv), q = slice(projected, -1, 0, 24),
          k = slice(projected, -1, 24, 24), v = slice(projected, -1, 48, 24);
    Expected y(attention(q, k, v, 3), tolerance), weights(softmax(attentionScores(q, k, 3), -1), tolerance);
    runAndCompare(session(), ENTRY(seen), e.batch, e.rows, Given(x), y, weights);
  }
}

/// Rotates each pair of a head by the angle of its row.
Array rotary(const Array &x, int heads, double base) {
  const std::int64_t depth = x.shape.back() / heads;
  return generate(x.shape, [&](const Index &index) {
    const std::int64_t channel = index[2] % depth, pair = channel % (depth / 2);
    const double angle =
        static_cast<double>(index[1]) * std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(depth));
    Index other = index;
    other[2] += channel < depth / 2 ? depth / 2 : -depth / 2;
    return x.at(index) * std::cos(angle) + (channel < depth / 2 ? -1 : 1) * x.at(other) * std::sin(angle);
  });
}

TEST(Attention, Rotary) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({e.batch, e.rows, 24});
    Expected three(rotary(x, 3, 500000), 1e-6, 1), one(rotary(x, 1, 10000), 1e-6, 1);
    runAndCompare(session(), ENTRY(rotary), e.batch, e.rows, Given(x), three, one);
  }
}

TEST(Attention, ByHand) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array q = random({e.batch, e.rows, 12}), k = random({e.batch, e.others, 12}), v = random({e.batch, e.others, 12});
    Expected y(attention(q, k, v, 1, {.scale = 0.3}), tolerance);
    runAndCompare(session(), ENTRY(by_hand), e.batch, e.rows, e.others, Given(q), Given(k), Given(v), y);
  }
}

} // namespace
} // namespace kiln::testing
