// SPDX-License-Identifier: Apache-2.0
#include "AttentionKernel.h"

#include "KernelText.h"
#include <cmath>
#include <cstdio>
#include <limits>

namespace kiln::testing {

std::string attentionKernel(const AttentionCase &s) {
  auto str = [](int n) { return std::to_string(n); };
  std::vector<std::pair<int, int>> symbols{{1, s.mostQueries ? s.mostQueries : s.bound}};
  if (s.isCross)
    symbols.push_back({1, s.bound});
  KernelText k(symbols);
  std::string keys = s.isCross ? "s1" : "s0", h = str(s.heads), d = str(s.headDim);
  const std::string batch = str(attentionBatch);
  Value q = k.argument(k.type({batch, "s0", str(s.heads * s.headDim)}, s.queries));
  const std::string stored = s.isPlanar ? k.type({batch, str(s.keyHeads), keys, d}, s.element)
                                        : k.type({batch, keys, str(s.keyHeads * s.headDim)}, s.element);
  Value key = k.argument(stored), value = k.argument(stored);
  Value mask, lengths;
  if (s.hasMask)
    mask = k.argument(k.type({"s0", keys}));
  if (s.hasLengths)
    lengths = k.argument(k.type({batch}, "i32"));
  std::string wide = k.type({batch, h, "s0", keys}), narrow = k.type({batch, h, "s0"});
  std::string keyHead = s.heads == s.keyHeads ? "b" : "(b floordiv " + str(s.heads / s.keyHeads) + ")";
  auto at = [&](const std::string &key, const std::string &channel) {
    return s.isPlanar ? "a, " + keyHead + ", " + key + ", " + channel
                      : "a, " + key + ", " + keyHead + " * " + d + " + " + channel;
  };
  auto multiply = [&](const std::string &ofX) {
    std::string widened, x = "%x0", y = "%x1";
    if (ofX != "f32")
      widened += "%v = arith.extf %x0 : " + ofX + " to f32\n", x = "%v";
    if (s.element != "f32")
      widened += "%w = arith.extf %x1 : " + s.element + " to f32\n", y = "%w";
    return widened + "%m = arith.mulf " + x + ", " + y + " : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";
  };
  Value headDim = k.empty(k.type({d}));
  Value scores =
      k.reduce("ppppr", {q, key, headDim}, wide, {"a, c, b * " + d + " + e", at("d", "e"), "e", "a, b, c, d"},
               "0.0 : f32", multiply(s.queries));
  std::vector<Value> inputs{scores};
  std::vector<std::string> maps{"a, b, c, d"};
  char scale[32]; // all digits of an f32
  std::snprintf(scale, sizeof scale, "%.10f", 1 / std::sqrt(double(s.headDim)));
  std::string body = "%scale = arith.constant " + std::string(scale) + " : f32\n" +
                     "%t0 = arith.mulf %x0, %scale : f32\n%low = arith.constant -3.0e38 : f32\n";
  std::string last = "%t0";
  if (s.hasMask) {
    maps.push_back("c, d");
    body += "%t1 = arith.addf %t0, %x1 : f32\n";
    last = "%t1";
    inputs.push_back(mask);
  }
  if (s.isCausal) {
    body += "%i0 = linalg.index 2 : index\n%j = linalg.index 3 : index\n";
    body += s.isOffset ? "%more = arith.subi %s1, %s0 : index\n%i = arith.addi %i0, %more : index\n"
                       : "%zero = arith.constant 0 : index\n%i = arith.addi %i0, %zero : index\n";
    body += "%c = arith.cmpi sle, %j, %i : index\n%t2 = arith.select %c, " + last + ", %low : f32\n";
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
                            {"a, b, c, e", at("e", "d"), "a, b, c, d"}, "0.0 : f32", multiply("f32"));
  Value result = k.one("pppp", {products, sums}, k.type({batch, "s0", h, d}), {"a, c, b, d", "a, c, b", "a, b, c, d"},
                       "%s = arith.divf %x0, %x1 : f32\nlinalg.yield %s : f32");
  return k.finish({result}, s.attributes);
}

std::vector<Tensor> attentionInputs(const AttentionCase &s, int64_t queries, int64_t keys, int64_t mostKeys,
                                    int64_t firstNan) {
  const int64_t width = s.heads * s.headDim, keyWidth = s.keyHeads * s.headDim;
  std::vector<Tensor> inputs{randomTensor({attentionBatch, queries, width})};
  for (int i = 0; i < 2; ++i) {
    Tensor x = s.isPlanar ? randomTensor({attentionBatch, s.keyHeads, keys, s.headDim})
                          : randomTensor({attentionBatch, keys, keyWidth});
    for (size_t at = 0; at < x.values.size(); ++at)
      if (int64_t(at) / (s.isPlanar ? s.headDim : keyWidth) % keys >= firstNan)
        x.values[at] = NAN;
    if (s.element != "f32")
      for (double &value : x.values)
        value = std::round(value * 16) / 16;
    inputs.push_back(std::move(x));
  }
  if (s.queries != "f32")
    for (double &value : inputs[0].values)
      value = std::round(value * 16) / 16;
  if (s.hasMask) {
    Tensor mask = randomTensor({queries, keys});
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 1; j < keys; j += 3)
        mask.at({i, j}) = -std::numeric_limits<double>::infinity();
    inputs.push_back(std::move(mask));
  }
  if (s.hasLengths)
    inputs.push_back(randomIntegers({attentionBatch}, 1, int(std::min(keys, mostKeys)) + 1));
  return inputs;
}

Tensor expectedAttention(const AttentionCase &s, int64_t queries, int64_t keys, const std::vector<Tensor> &inputs) {
  const Tensor &q = inputs[0], &mask = inputs[s.hasMask ? 3 : 0], &lengths = inputs.back();
  auto rowOf = [&](const Tensor &x, int64_t b, int64_t head, int64_t j) {
    const int64_t row = s.isPlanar ? (b * s.keyHeads + head) * keys + j : (b * keys + j) * s.keyHeads + head;
    return x.values.data() + row * s.headDim;
  };
  Tensor expected = Tensor::zeros({attentionBatch, queries, s.heads, s.headDim});
  for (int64_t b = 0; b < attentionBatch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t keyHead = h / (s.heads / s.keyHeads), last = i + (s.isOffset ? keys - queries : 0);
        auto counts = [&](int64_t j) {
          return (!s.isCausal || j <= last) && (!s.hasLengths || double(j) < lengths.at({b}));
        };
        const bool hasKeys = counts(0);
        const int64_t row = ((b * queries + i) * s.heads + h) * s.headDim;
        const double *query = q.values.data() + row;
        double *output = expected.values.data() + row;
        std::vector<double> score(keys, -INFINITY);
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const double *key = rowOf(inputs[1], b, keyHead, j);
          double dot = 0;
          for (int64_t d = 0; d < s.headDim; ++d)
            dot += query[d] * key[d];
          score[j] = !hasKeys    ? 0
                     : counts(j) ? dot / std::sqrt(double(s.headDim)) + (s.hasMask ? mask.at({i, j}) : 0)
                                 : -INFINITY;
          largest = std::max(largest, score[j]);
        }
        for (double &x : score)
          sum += x = std::exp(x - largest);
        for (int64_t j = 0; j < keys; ++j) {
          const double *value = rowOf(inputs[2], b, keyHead, j);
          for (int64_t d = 0; score[j] != 0 && d < s.headDim; ++d)
            output[d] += score[j] / sum * value[d];
        }
      }
  return expected;
}

} // namespace kiln::testing
