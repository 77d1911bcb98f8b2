// SPDX-License-Identifier: Apache-2.0
//
// Attention kernels against a loop in f64: lengths around the tile sizes, odd head sizes, fewer keys than queries and
// more, causal and additive masks, padding lengths, grouped-query attention, several key blocks, the ends of every
// parameter. Masked keys are not read.
#include "AttentionKernel.h"
#include <array>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using Shape = AttentionCase;

std::string str(int n) { return std::to_string(n); }

void check(Kernel &kernel, const Shape &s, int64_t queries, int64_t keys, int64_t mostKeys = INT32_MAX,
           int64_t firstNan = INT32_MAX) {
  SCOPED_TRACE("queries " + str(queries) + " keys " + str(keys));
  const std::vector<Tensor> inputs = attentionInputs(s, queries, keys, mostKeys, firstNan);
  std::vector<int64_t> symbols{queries};
  if (s.isCross)
    symbols.push_back(keys);
  Tensor actual = kernel.run(symbols, inputs)[0];
  for (int workers : {2, 3})
    EXPECT_EQ(kernel.run(symbols, inputs, /*aliased=*/-1, workers)[0].values, actual.values) << workers << " workers";
  expectClose(actual, expectedAttention(s, queries, keys, inputs));
}

class AttentionKernel : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionKernel, Lengths) {
  Shape s;
  s.bound = 513;
  s.isCausal = true;
  Kernel kernel(attentionKernel(s), GetParam());
  EXPECT_EQ(kernel.object().strategy, "attention");
  for (int64_t t : {1, 2, 5, 6, 7, 23, 24, 25, 63, 64, 65, 100, 128, 513})
    check(kernel, s, t, t);
}

TEST_P(AttentionKernel, HeadSizes) {
  size_t number = 0;
  for (int headDim : {1, 5, 32, 33, 48, 64, 80, 127, 128}) {
    if (!hasTurn(GetParam(), number++))
      continue;
    SCOPED_TRACE("depth " + str(headDim));
    Shape s;
    s.headDim = headDim;
    Kernel kernel(attentionKernel(s), GetParam());
    EXPECT_EQ(kernel.object().strategy, "attention");
    for (int64_t t : {1, 7, 66})
      check(kernel, s, t, t);
  }
}

TEST_P(AttentionKernel, MasksAndLengths) {
  for (int kind = 1; kind < 8; ++kind) {
    if (!hasTurn(GetParam(), kind))
      continue;
    SCOPED_TRACE("kind " + str(kind));
    Shape s;
    s.headDim = 32;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    Kernel kernel(attentionKernel(s), GetParam());
    for (int64_t t : {1, 3, 64, 67})
      check(kernel, s, t, t);
  }
}

TEST_P(AttentionKernel, OtherKeys) {
  Shape s;
  s.isCross = s.hasLengths = s.hasMask = true;
  s.heads = 4;
  Kernel kernel(attentionKernel(s), GetParam());
  for (auto [queries, keys] : {std::pair(1, 1), {1, 130}, {130, 1}, {7, 64}, {24, 65}, {100, 3}})
    check(kernel, s, queries, keys);
}

TEST_P(AttentionKernel, BlocksOfKeys) {
  const ScheduleConfig config{{"key_block", 64}};
  for (int kind = 0; kind < 8; ++kind) {
    if (!hasTurn(GetParam(), kind))
      continue;
    SCOPED_TRACE("kind " + str(kind));
    Shape s;
    s.bound = 700;
    s.headDim = kind & 1 ? 33 : 32;
    s.isCross = s.isOffset = true;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    Kernel kernel(attentionKernel(s), GetParam(), &config);
    EXPECT_EQ(kernel.object().strategy, "attention");
    for (auto [queries, keys] : {std::pair(1, 1), {1, 700}, {3, 64}, {7, 65}, {65, 129}, {130, 191}, {100, 320}})
      check(kernel, s, queries, keys);
  }
}

TEST_P(AttentionKernel, LongSequences) {
  Shape s;
  s.bound = 1500;
  s.heads = s.keyHeads = 1;
  s.headDim = 16;
  for (bool isCausal : {false, true}) {
    if (!hasTurn(GetParam(), isCausal))
      continue;
    s.isCausal = isCausal;
    Kernel kernel(attentionKernel(s), GetParam());
    check(kernel, s, 1301, 1301);
  }
}

TEST_P(AttentionKernel, EndsOfEveryParameter) {
  Shape s;
  s.bound = 300;
  s.headDim = 40;
  s.isCausal = s.hasLengths = true;
  const std::string text = attentionKernel(s);
  size_t number = 0;
  for (const TuningParameter &parameter : describe(text, GetParam()).space)
    for (int64_t value : {parameter.values.front(), parameter.values.back()}) {
      if (!hasTurn(GetParam(), number++))
        continue;
      ScheduleConfig config{{"key_block", 64}};
      config[parameter.key] = value;
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, GetParam(), &config);
      for (int64_t t : {1, 67, 130})
        check(kernel, s, t, t);
    }
}

// Several query blocks share a packed copy of keys and values. There may be fewer query blocks than a copy serves, and
// none at its end. With a causal mask or lengths each query block needs its own number of keys, and a copy has the keys
// that any of its blocks needs.
TEST_P(AttentionKernel, SharedCopies) {
  for (int64_t share : {2, 8})
    for (int64_t keyBlock : {64, 1024})
      for (int kind = 0; kind < 4; ++kind) {
        if (!hasTurn(GetParam(), kind + kind / 2 + (share == 8) + (keyBlock == 64)))
          continue;
        Shape s;
        s.bound = 300;
        s.headDim = 40;
        s.isCausal = kind & 1;
        s.hasLengths = kind & 2;
        const ScheduleConfig config{
            {"share", share}, {"pack_keys", 1}, {"pack_values", 1}, {"key_block", keyBlock}, {"query_tiles", 1}};
        SCOPED_TRACE("kind " + str(kind) + ", " + toString(config));
        Kernel kernel(attentionKernel(s), GetParam(), &config);
        for (int64_t t : {1, 31, 65, 130, 293})
          check(kernel, s, t, t);
      }
}

// As many keys as queries, or more, where the last query sees the last key; with the default configuration of each
// bound.
TEST_P(AttentionKernel, CausalDefaults) {
  for (int64_t bound : {200, 400, 900}) {
    Shape s;
    s.bound = bound;
    s.heads = s.keyHeads = 2;
    s.headDim = 16;
    s.isCausal = s.isCross = s.isOffset = true;
    Kernel kernel(attentionKernel(s), GetParam());
    for (auto [queries, keys] : {std::pair(17, 17), {17, 180}, {bound - 1, bound}, {bound / 2 + 3, bound}})
      check(kernel, s, queries, keys);
  }
}

// Keys beyond the diagonal, and beyond a sequence's length, are not read: they may be NaN.
TEST_P(AttentionKernel, SkipsWhatDoesNotCount) {
  for (int64_t keyBlock : {64, 1024}) {
    if (!hasTurn(GetParam(), keyBlock == 64))
      continue;
    const ScheduleConfig config{{"key_block", keyBlock}};
    Shape s;
    s.bound = 600;
    s.isCross = s.isCausal = true;
    {
      Kernel kernel(attentionKernel(s), GetParam(), &config);
      check(kernel, s, 10, 300, INT32_MAX, 10);
      check(kernel, s, 100, 600, INT32_MAX, 100);
    }
    s.isCausal = false;
    s.hasLengths = true;
    Kernel kernel(attentionKernel(s), GetParam(), &config);
    check(kernel, s, 70, 600, 129, 129);
  }
}

// Sliding windows, with one block of keys and with several.
TEST_P(AttentionKernel, Windows) {
  for (int64_t keyBlock : {64, 1024})
    for (int window : {1, 50, 129}) {
      if (!hasTurn(GetParam(), keyBlock / 64 + window % 2))
        continue;
      const ScheduleConfig config{{"key_block", keyBlock}};
      Shape s;
      s.bound = 400;
      s.headDim = 32;
      s.isCross = s.isOffset = s.isCausal = true;
      s.window = window;
      SCOPED_TRACE("window " + str(window) + ", " + toString(config));
      Kernel kernel(attentionKernel(s), GetParam(), &config);
      for (auto [queries, keys] : {std::pair(1, 1), {1, 400}, {67, 67}, {130, 391}})
        check(kernel, s, queries, keys);
      s.mostQueries = 1;
      Kernel one(attentionKernel(s), GetParam(), &config);
      EXPECT_EQ(one.object().strategy, "one_query");
      for (int64_t keys : {1, 63, 393})
        check(one, s, 1, keys);
    }
}

// Blocks of keys before the window are not read: they may be NaN.
TEST_P(AttentionKernel, SkipsBlocksBeforeTheWindow) {
  const ScheduleConfig config{{"key_block", 64}};
  for (int mostQueries : {1, 40}) {
    if (!hasTurn(GetParam(), mostQueries))
      continue;
    Shape s;
    s.mostQueries = mostQueries;
    s.bound = 600;
    s.headDim = 32;
    s.isCross = s.isOffset = s.isCausal = true;
    s.window = 100;
    Kernel kernel(attentionKernel(s), GetParam(), &config);
    const int64_t queries = mostQueries, keys = 512;
    std::vector<Tensor> inputs = attentionInputs(s, queries, keys);
    for (int i : {1, 2})
      for (int64_t batch = 0; batch < attentionBatch; ++batch)
        for (int64_t key = 0; key < 320; ++key) // the first window begins with key 512 - 40 - 99
          for (int64_t d = 0; d < s.keyHeads * s.headDim; ++d)
            inputs[i].at({batch, key, d}) = NAN;
    expectClose(kernel.run({queries, keys}, inputs)[0], expectedAttention(s, queries, keys, inputs));
  }
}

// Where no key counts, the result is 0, whatever the values are.
TEST_P(AttentionKernel, NothingCounts) {
  const ScheduleConfig config{{"key_block", 64}};
  Shape s;
  s.hasLengths = true;
  Kernel kernel(attentionKernel(s), GetParam(), &config);
  const int64_t t = 130, width = s.heads * s.headDim;
  Tensor q = randomTensor({3, t, width}), k = randomTensor({3, t, width}), v = randomTensor({3, t, width});
  v.values[0] = NAN, v.values[1] = INFINITY;
  const Tensor actual = kernel.run({t}, {q, k, v, Tensor::zeros({3})})[0];
  for (double value : actual.values)
    ASSERT_EQ(value, 0);
}

// A single query has a separate strategy: all masks, layouts of keys and values, grouped-query attention, head sizes.
TEST_P(AttentionKernel, OneQuery) {
  for (int kind = 0; kind < 8; ++kind) {
    if (!hasTurn(GetParam(), kind))
      continue;
    SCOPED_TRACE("kind " + str(kind));
    Shape s;
    s.mostQueries = 1;
    s.bound = 300;
    s.heads = 6;
    s.keyHeads = kind % 3 ? 2 : 6;
    s.headDim = std::array{64, 33, 80, 5, 1, 127, 32, 128}[kind];
    s.isCross = s.isOffset = true;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    s.isPlanar = kind == 2 || kind == 5;
    Kernel kernel(attentionKernel(s), GetParam());
    EXPECT_EQ(kernel.object().strategy, "one_query");
    for (int64_t keys : {1, 16, 63, 65, 291})
      check(kernel, s, 1, keys);
  }
}

TEST_P(AttentionKernel, OneQuerySkipsWhatDoesNotCount) {
  for (bool isLong : {false, true}) {
    if (!hasTurn(GetParam(), isLong))
      continue;
    Shape s;
    s.mostQueries = 1;
    s.bound = isLong ? 600 : 60;
    s.isCross = s.isCausal = true; // query 0 sees key 0
    Kernel causal(attentionKernel(s), GetParam());
    check(causal, s, 1, s.bound, INT32_MAX, 1);
    s.isCausal = false;
    s.hasLengths = true;
    Kernel padded(attentionKernel(s), GetParam());
    check(padded, s, 1, s.bound, s.bound / 3, s.bound / 3);
  }
}

TEST_P(AttentionKernel, FewQueries) {
  for (bool isCross : {false, true}) {
    if (!hasTurn(GetParam(), isCross))
      continue;
    Shape s;
    s.mostQueries = 16;
    s.bound = isCross ? 300 : 16;
    s.isCross = s.isOffset = isCross;
    s.isCausal = s.hasLengths = true;
    Kernel kernel(attentionKernel(s), GetParam());
    EXPECT_EQ(kernel.object().strategy, "attention");
    for (int64_t t : {1, 2, 7, 15, 16})
      check(kernel, s, t, isCross ? 281 : t);
  }
}

TEST_P(AttentionKernel, VariantsOfAKernel) {
  auto variants = [&](int mostQueries, bool isCross) {
    Shape s;
    s.mostQueries = mostQueries;
    s.isCross = isCross;
    std::vector<int64_t> bounds;
    for (ShapeVariant variant : shapeVariants(attentionKernel(s), GetParam())) {
      EXPECT_EQ(variant.symbol, 0u);
      bounds.push_back(variant.bound);
    }
    return bounds;
  };
  using Bounds = std::vector<int64_t>;
  for (bool isCross : {false, true}) {
    EXPECT_EQ(variants(300, isCross), (Bounds{1, 16}));
    EXPECT_EQ(variants(16, isCross), Bounds{1});
    EXPECT_EQ(variants(1, isCross), Bounds());
  }
}

// Scratch memory grows with the number of keys, not with its square.
TEST(AttentionScratch, GrowsWithTheLength) {
  for (bool isCausal : {false, true}) {
    auto bytes = [&](int bound) {
      Shape s;
      s.bound = bound;
      s.isCausal = isCausal;
      return Kernel(attentionKernel(s), "x86-64-v3").object().scratchBytes;
    };
    int64_t some = bytes(4096), many = bytes(32768);
    EXPECT_LE(many, 8 * some);
    EXPECT_LE(many, 32768 * 512);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionKernel, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
