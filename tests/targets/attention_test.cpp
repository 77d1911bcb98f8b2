// SPDX-License-Identifier: Apache-2.0
//
// Attention kernels against a loop in f64: lengths around the tiles, odd head sizes, fewer keys than queries and more,
// causal and additive masks, padding lengths, shared key heads.
#include "Harness.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

struct Shape {
  int heads = 2, keyHeads = 2, depth = 64, bound = 130;
  bool isCausal = false, hasMask = false, hasLengths = false;
  bool isCross = false; // keys have a symbol of their own
};

std::string str(int n) { return std::to_string(n); }

std::string kernelText(const Shape &s) {
  std::vector<std::pair<int, int>> symbols{{1, s.bound}};
  if (s.isCross)
    symbols.push_back({1, s.bound});
  KernelText k(symbols);
  std::string keys = s.isCross ? "s1" : "s0", h = str(s.heads), d = str(s.depth);
  const std::string batch = "3";
  Value q = k.argument(k.type({batch, "s0", str(s.heads * s.depth)}));
  Value key = k.argument(k.type({batch, keys, str(s.keyHeads * s.depth)}));
  Value value = k.argument(k.type({batch, keys, str(s.keyHeads * s.depth)}));
  Value mask, lengths;
  if (s.hasMask)
    mask = k.argument(k.type({"s0", keys}));
  if (s.hasLengths)
    lengths = k.argument(k.type({batch}, "i32"));
  std::string wide = k.type({batch, h, "s0", keys}), narrow = k.type({batch, h, "s0"});
  std::string keyHead = s.heads == s.keyHeads ? "b" : "(b floordiv " + str(s.heads / s.keyHeads) + ")";
  Value depth = k.empty(k.type({d}));
  Value scores =
      k.reduce("ppppr", {q, key, depth}, wide,
               {"a, c, b * " + d + " + e", "a, d, " + keyHead + " * " + d + " + e", "e", "a, b, c, d"}, "0.0 : f32",
               "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  std::vector<Value> inputs{scores};
  std::vector<std::string> maps{"a, b, c, d"};
  std::string body = "%scale = arith.constant " + std::to_string(1 / std::sqrt(double(s.depth))) + " : f32\n" +
                     "%t0 = arith.mulf %x0, %scale : f32\n%low = arith.constant -3.0e38 : f32\n";
  std::string last = "%t0";
  if (s.hasMask) {
    maps.push_back("c, d");
    body += "%t1 = arith.addf %t0, %x1 : f32\n";
    last = "%t1";
    inputs.push_back(mask);
  }
  if (s.isCausal) {
    body += "%i = linalg.index 2 : index\n%j = linalg.index 3 : index\n%c = arith.cmpi sle, %j, %i : index\n%t2 = "
            "arith.select %c, " +
            last + ", %low : f32\n";
    last = "%t2";
  }
  if (s.hasLengths) {
    body += "%n = arith.index_cast %x" + str(inputs.size()) + " : i32 to index\n%l = linalg.index 3 : index\n" +
            "%in = arith.cmpi slt, %l, %n : index\n%t3 = arith.select %in, " + last + ", %low : f32\n";
    maps.push_back("a");
    inputs.push_back(lengths);
    last = "%t3";
  }
  maps.push_back("a, b, c, d");
  Value masked = k.one("pppp", inputs, wide, maps, body + "linalg.yield " + last + " : f32");
  Value maxima = k.reduce("pppr", {masked}, narrow, {"a, b, c, d", "a, b, c"}, "0xff800000 : f32",
                          "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value weights = k.one("pppp", {masked, maxima}, wide, {"a, b, c, d", "a, b, c", "a, b, c, d"},
                        "%s = arith.subf %x0, %x1 : f32\n%e = math.exp %s : f32\nlinalg.yield %e : f32");
  Value sums = k.reduce("pppr", {weights}, narrow, {"a, b, c, d", "a, b, c"}, "0.0 : f32",
                        "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value products = k.reduce("ppppr", {weights, value}, k.type({batch, h, "s0", d}),
                            {"a, b, c, e", "a, e, " + keyHead + " * " + d + " + d", "a, b, c, d"}, "0.0 : f32",
                            "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  Value result = k.one("pppp", {products, sums}, k.type({batch, "s0", h, d}), {"a, c, b, d", "a, c, b", "a, b, c, d"},
                       "%s = arith.divf %x0, %x1 : f32\nlinalg.yield %s : f32");
  return k.finish({result});
}

void check(Kernel &kernel, const Shape &s, int64_t queries, int64_t keys) {
  SCOPED_TRACE("queries " + str(queries) + " keys " + str(keys));
  int64_t batch = 3, depth = s.depth, width = s.heads * depth, keyWidth = s.keyHeads * depth;
  Tensor q = randomTensor({batch, queries, width}), k = randomTensor({batch, keys, keyWidth}),
         v = randomTensor({batch, keys, keyWidth});
  Tensor mask = randomTensor({queries, keys}), lengths = randomIntegers({batch}, 1, keys + 1);
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 1; j < keys; j += 3)
      mask.at({i, j}) = -std::numeric_limits<double>::infinity();
  std::vector<Tensor> inputs{q, k, v};
  if (s.hasMask)
    inputs.push_back(mask);
  if (s.hasLengths)
    inputs.push_back(lengths);
  std::vector<int64_t> symbols{queries};
  if (s.isCross)
    symbols.push_back(keys);
  Tensor actual = kernel.run(symbols, inputs)[0];

  Tensor expected = Tensor::zeros({batch, queries, s.heads, depth});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        int64_t kh = h / (s.heads / s.keyHeads);
        std::vector<double> score(keys);
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < depth; ++d)
            dot += q.at({b, i, h * depth + d}) * k.at({b, j, kh * depth + d});
          score[j] = dot / std::sqrt(double(depth)) + (s.hasMask ? mask.at({i, j}) : 0);
          if ((s.isCausal && j > i) || (s.hasLengths && j >= lengths.at({b})))
            score[j] = -INFINITY;
          largest = std::max(largest, score[j]);
        }
        for (double &x : score)
          sum += x = std::exp(x - largest);
        for (int64_t d = 0; d < depth; ++d) {
          double y = 0;
          for (int64_t j = 0; j < keys; ++j)
            y += score[j] * v.at({b, j, kh * depth + d});
          expected.at({b, i, h, d}) = y / sum;
        }
      }
  expectClose(actual, expected);
}

class AttentionKernel : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionKernel, Lengths) {
  Shape s;
  s.bound = 513;
  s.isCausal = true;
  Kernel kernel(kernelText(s), GetParam());
  EXPECT_EQ(kernel.object().strategy, "attention");
  for (int64_t t : {1, 2, 5, 6, 7, 23, 24, 25, 63, 64, 65, 100, 128, 513})
    check(kernel, s, t, t);
}

TEST_P(AttentionKernel, HeadSizes) {
  for (int depth : {1, 5, 32, 48, 64, 80, 128}) {
    SCOPED_TRACE("depth " + str(depth));
    Shape s;
    s.depth = depth;
    Kernel kernel(kernelText(s), GetParam());
    EXPECT_EQ(kernel.object().strategy, "attention");
    for (int64_t t : {1, 7, 66})
      check(kernel, s, t, t);
  }
}

TEST_P(AttentionKernel, MasksAndLengths) {
  for (int kind = 1; kind < 8; ++kind) {
    SCOPED_TRACE("kind " + str(kind));
    Shape s;
    s.depth = 32;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    Kernel kernel(kernelText(s), GetParam());
    for (int64_t t : {1, 3, 64, 67})
      check(kernel, s, t, t);
  }
}

TEST_P(AttentionKernel, OtherKeys) {
  Shape s;
  s.isCross = s.hasLengths = s.hasMask = true;
  s.heads = 4;
  Kernel kernel(kernelText(s), GetParam());
  for (auto [queries, keys] : {std::pair(1, 1), {1, 130}, {130, 1}, {7, 64}, {24, 65}, {100, 3}})
    check(kernel, s, queries, keys);
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionKernel, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
