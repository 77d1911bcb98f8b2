// SPDX-License-Identifier: Apache-2.0
// Contractions, convolutions, attention, pooling and resizing, with hand-computed results.
#include <cmath>

#include "ops.h"

namespace kiln::interpreter {
namespace {

TEST(Contractions, Linear) {
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6}), weight = f32({2, 3}, {1, 0, -1, 2, 2, 2});
  const Tensor bias = f32({2}, {10, 20});
  expectValues(evaluate(Op::linear, {x, weight}, {1, 2, 2}), {-2, 12, -2, 30});
  expectValues(evaluate(Op::linear, {x, weight, bias}, {1, 2, 2}), {8, 32, 8, 50});
  Attributes inOut;
  inOut.weight_order = WeightOrder::in_out;
  expectValues(evaluate(Op::linear, {x, f32({3, 2}, {1, 2, 0, 2, -1, 2})}, {1, 2, 2}, inOut), {-2, 12, -2, 30});
  EXPECT_THROW(evaluate(Op::linear, {x, weight}, {1, 2, 2}, inOut), std::runtime_error);
}

// Rows 0 and 1 are in group 0; group 1 ends before it begins; the last group has row 2 although it ends there.
TEST(Contractions, GroupedLinear) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6}), ends = i32({3}, {2, 1, 2});
  const Tensor weight = f32({6, 2}, {1, 0, 0, 1, 10, 0, 0, 10, 1, 1, 1, -1}), bias = f32({6}, {0, 1, 2, 3, 4, 5});
  expectValues(evaluate(Op::grouped_linear, {x, weight, ends}, {3, 2}), {1, 2, 3, 4, 11, -1});
  expectValues(evaluate(Op::grouped_linear, {x, weight, ends, bias}, {3, 2}), {1, 3, 3, 5, 15, 4});
  Attributes inOut;
  inOut.weight_order = WeightOrder::in_out;
  expectValues(evaluate(Op::grouped_linear, {x, f32({6, 1}, {1, 2, 0, 0, 3, 4}), ends}, {3, 1}, inOut), {5, 11, 39});
  EXPECT_THROW(evaluate(Op::grouped_linear, {x, f32({5, 2}, {1, 0, 0, 1, 0, 0, 0, 0, 1, 1}), ends}, {3, 2}),
               std::runtime_error);
  EXPECT_THROW(evaluate(Op::grouped_linear, {x, weight, f32({3}, {1, 2, 3})}, {3, 2}), std::runtime_error);
}

TEST(Contractions, MatmulBroadcastsLeadingExtents) {
  const Tensor a = f32({2, 1, 1, 2}, {1, 2, 3, 4}), b = f32({3, 2, 1}, {1, 1, 1, -1, 10, 0});
  expectValues(evaluate(Op::matmul, {a, b}, {2, 3, 1, 1}), {3, -1, 10, 7, -1, 30});
}

TEST(Contractions, Conv2d) {
  // One channel, 3 x 3, with PyTorch's cross-correlation.
  const Tensor x = f32({1, 3, 3, 1}, counted(9, 1)), weight = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(evaluate(Op::conv2d, {x, weight}, {1, 2, 2, 1}), {37, 47, 67, 77});
  Attributes options;
  options.window.stride = Pair(2, 1);
  options.window.padding = Pair(1, 0);
  options.window.dilation = Pair(1, 2);
  // Rows -1 and 1, columns 0 and 2: row -1 is padding.
  expectValues(evaluate(Op::conv2d, {x, weight, f32({1}, {100})}, {1, 2, 1, 1}, options),
               {100 + 3 * 1 + 4 * 3.0, 100 + 1 * 4 + 2 * 6 + 3 * 7 + 4 * 9.0});
  Attributes groups;
  groups.groups = 2;
  const Tensor two = f32({1, 1, 4}, {1, 2, 3, 4}), each = f32({4, 2, 1, 1}, {1, 1, 1, -1, 10, 0, 0, 10});
  expectValues(evaluate(Op::conv2d, {two, each}, {1, 1, 4}, groups), {3, -1, 30, 40});
}

// A Winograd convolution may be used. Its intermediate terms a - b and a + b may be larger than those of the window,
// where one of them has weight 0.
TEST(Contractions, MayBeWinograds) {
  const Tensor weight = f32({1, 1, 3, 3}, {1, 0, 0, 0, 0, 0, 0, 0, 0});
  std::vector<double> pixels(9, 0.0);
  pixels[8] = 1e6; // has weight 0
  const Tensor y = evaluate(Op::conv2d, {f32({3, 3, 1}, pixels), weight}, {1, 1, 1});
  EXPECT_EQ(y.values[0], 0);
  EXPECT_GE(y.errors[0], 0x1p-24 * 1e6);
  pixels[8] = infinity; // infinity minus infinity
  EXPECT_EQ(evaluate(Op::conv2d, {f32({3, 3, 1}, pixels), f32({1, 1, 3, 3}, counted(9, 1))}, {1, 1, 1}).errors[0],
            infinity);
  pixels[8] = nan;
  expectValues(evaluate(Op::conv2d, {f32({3, 3, 1}, pixels), f32({1, 1, 3, 3}, counted(9, 1))}, {1, 1, 1}), {nan});
  Attributes dilated;
  dilated.window.dilation = 2;
  pixels.resize(25);
  pixels[8] = 1e6;
  expectExactly(evaluate(Op::conv2d, {f32({5, 5, 1}, pixels), weight}, {1, 1, 1}, dilated), {0});
}

Attributes heads(int heads, int keyHeads, double scale) {
  Attributes attributes;
  attributes.heads = heads;
  attributes.key_value_heads = keyHeads;
  attributes.scale = scale;
  return attributes;
}

TEST(Attention, WeighsValues) {
  // Two query heads of width 1, one key and value head: scores q k / 2.
  const Tensor q = f32({1, 2}, {2, 4}), k = f32({2, 1}, {0, 1}), v = f32({2, 1}, {0, 1});
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  expectValues(evaluate(Op::attention, {q, k, v}, {1, 2}, heads(2, 1, 0.5)), {sigmoid(1), sigmoid(2)});
  expectValues(evaluate(Op::attention_scores, {q, k}, {2, 1, 2}, heads(2, 1, 0.5)), {0, 1, 0, 2});
}

TEST(Attention, LimitsScores) {
  const Tensor q = f32({1, 1}, {2}), k = f32({2, 1}, {1, -3}), mask = f32({1, 2}, {5, 7});
  Attributes capped = heads(1, 1, 1);
  capped.softcap = 0.5;
  const double a = 0.5 * std::tanh(4.0), b = -0.5 * std::tanh(12.0);
  expectValues(evaluate(Op::attention_scores, {q, k}, {1, 1, 2}, capped), {a, b});
  capped.has_mask = true;
  expectValues(evaluate(Op::attention_scores, {q, k, mask}, {1, 1, 2}, capped), {a + 5, b + 7});
}

TEST(Attention, AddsAScoreOfEachHead) {
  const Tensor q = f32({1, 2}, {1, 1}), k = f32({2, 2}, {0, 1, 0, 2}), v = f32({2, 2}, {3, 5, 6, 7}),
               sinks = f32({2}, {0, 3});
  Attributes withSinks = heads(2, 2, 1);
  withSinks.has_sinks = true;
  const double all = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  expectValues(evaluate(Op::attention, {q, k, v, sinks}, {1, 2}, withSinks),
               {(3 + 6) / 3.0, (5 * std::exp(1.0) + 7 * std::exp(2.0)) / all});
  withSinks.has_lengths = true;
  expectExactly(evaluate(Op::attention, {q, k, v, sinks, i32({}, {0})}, {1, 2}, withSinks), {0, 0});
}

TEST(Attention, MasksKeys) {
  const Tensor q = f32({2, 1}, {0, 0}), k = f32({3, 1}, {1, 2, 3}), v = f32({3, 2}, {1, 10, 2, 20, 6, 60});
  Attributes causal = heads(1, 1, 1);
  causal.causal = true; // query i sees keys 0 .. i + 1
  expectValues(evaluate(Op::attention, {q, k, v}, {2, 2}, causal), {1.5, 15, 3, 30});
  Attributes window = causal;
  window.window_keys = 1; // query i sees key i + 1
  expectValues(evaluate(Op::attention, {q, k, v}, {2, 2}, window), {2, 20, 6, 60});
  expectValues(evaluate(Op::attention_scores, {q, k}, {1, 2, 3}, window), {-3e38f, 0, -3e38f, -3e38f, -3e38f, 0});
  Attributes lengths = heads(1, 1, 1);
  lengths.has_lengths = true;
  expectValues(evaluate(Op::attention, {q, k, v, i32({}, {1})}, {2, 2}, lengths), {1, 10, 1, 10});
  expectExactly(
      evaluate(Op::attention, {q, k, f32({3, 2}, {nan, 10, infinity, 20, 6, 60}), i32({}, {0})}, {2, 2}, lengths),
      {0, 0, 0, 0});
  Attributes masked = heads(1, 1, 1);
  masked.has_mask = true;
  const Tensor mask = f32({2, 3}, {0, -infinity, std::log(3), -infinity, -infinity, -infinity});
  const Tensor y = evaluate(Op::attention, {q, k, v, mask}, {2, 2}, masked);
  EXPECT_NEAR(y.values[0], (1 + 3 * 6) / 4.0, 1e-6);
  EXPECT_EQ(y.values[2], 0); // the second query sees no key
  EXPECT_EQ(y.errors[2], 0);
  const Tensor scores = evaluate(Op::attention_scores, {q, k, mask}, {1, 2, 3}, masked);
  EXPECT_LE(scores.values[1] + scores.errors[1], -0.8e38);
  causal.has_mask = true;
  const Tensor excluded = evaluate(Op::attention_scores, {q, k, f32({1, 2, 3}, counted(6))}, {1, 2, 3}, causal);
  EXPECT_EQ(excluded.values[2], -3.0e38f);
  EXPECT_EQ(excluded.values[5], 5); // one mask for all heads
}

// Masked keys may be NaN: their weight is exactly 0.
TEST(Attention, PassesOverNanOfKeysThatDoNotCount) {
  const Tensor q = f32({1, 1}, {1}), k = f32({2, 1}, {1, nan});
  Attributes lengths = heads(1, 1, 1);
  lengths.has_lengths = true;
  expectValues(evaluate(Op::attention, {q, k, f32({2, 1}, {5, 6}), i32({}, {1})}, {1, 1}, lengths), {5});
  expectValues(evaluate(Op::attention, {q, k, f32({2, 1}, {5, 6}), i32({}, {2})}, {1, 1}, lengths), {nan});
}

TEST(Images, Pools) {
  const Tensor x = f32({3, 3, 1}, {1, 2, 3, 4, nan, 6, 7, 8, 9});
  Attributes pool;
  pool.window.kernel = 2;
  expectValues(evaluate(Op::max_pool2d, {f32({3, 3, 1}, counted(9))}, {2, 2, 1}, pool), {4, 5, 7, 8});
  expectValues(evaluate(Op::max_pool2d, {x}, {2, 2, 1}, pool), {nan, nan, nan, nan});
  pool.window.stride = 2;
  pool.window.padding = 1;
  expectValues(evaluate(Op::max_pool2d, {x}, {2, 2, 1}, pool), {1, 3, 7, nan});
  // Padding counts as zeros in the mean, and is ignored in the maximum.
  expectValues(evaluate(Op::avg_pool2d, {f32({3, 3, 1}, counted(9, 1))}, {2, 2, 1}, pool),
               {0.25, 5 / 4.0, 11 / 4.0, 28 / 4.0});
  expectValues(evaluate(Op::max_pool2d, {f32({1, 1, 1}, {-5})}, {1, 1, 1}, pool), {-5});
}

TEST(Images, ResizeBilinear) {
  // torch.nn.functional.interpolate(mode="bilinear", align_corners=False) of a row.
  expectValues(evaluate(Op::resize_bilinear, {f32({1, 2, 1}, {1, 5})}, {1, 4, 1}), {1, 2, 4, 5});
  expectValues(evaluate(Op::resize_bilinear, {f32({1, 4, 1}, {1, 2, 4, 8})}, {1, 2, 1}), {1.5, 6});
  expectValues(evaluate(Op::resize_bilinear, {f32({2, 2, 1}, {0, 4, 8, 12})}, {3, 3, 1}),
               {0, 2, 4, 4, 6, 8, 8, 10, 12});
}

} // namespace
} // namespace kiln::interpreter
