// SPDX-License-Identifier: Apache-2.0
#include "AttentionKernel.h"

#include "KernelText.h"
#include <cmath>
#include <limits>

namespace kiln::testing {

std::string attentionKernel(const AttentionCase &s) {
  auto str = [](int n) { return std::to_string(n); };
  std::vector<std::pair<int, int>> symbols{{1, s.mostQueries ? s.mostQueries : s.bound}};
  if (s.isCross)
    symbols.push_back({1, s.bound});
  KernelText k(symbols);
  const std::string keys = s.isCross ? "s1" : "s0", h = str(s.heads), d = str(s.headDim), batch = str(attentionBatch);
  const Value q = k.argument(k.type({batch, "s0", str(s.heads * s.headDim)}, s.queries));
  const std::string stored = s.isPlanar ? k.type({batch, str(s.keyHeads), keys, d}, s.element)
                                        : k.type({batch, keys, str(s.keyHeads * s.headDim)}, s.element);
  const Value key = k.argument(stored), value = k.argument(stored);
  const std::string keyHead = s.heads == s.keyHeads ? "h" : "(h floordiv " + str(s.heads / s.keyHeads) + ")";
  auto at = [&](const std::string &channel) {
    return s.isPlanar ? "b, " + keyHead + ", k, " + channel : "b, k, " + keyHead + " * " + d + " + " + channel;
  };
  AttentionText attention{.extents = {batch, h, "s0", keys, d, d},
                          .query = {q, "b, q, h * " + d + " + d"},
                          .key = {key, at("d")},
                          .value = {value, at("e")},
                          .scale = 1 / std::sqrt(double(s.headDim)),
                          .window = s.window};
  if (s.isCausal)
    attention.causalOffset = s.isCross && s.isOffset ? "s1 - s0" : "0";
  if (s.hasMask)
    attention.mask = {k.argument(k.type({"s0", keys})), "q, k"};
  if (s.hasLengths)
    attention.lengths = {k.argument(k.type({batch}, "i32")), "b"};
  return k.finish({k.attention(attention)}, s.attributes);
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
          return (!s.isCausal || j <= last) && (!s.window || j > last - s.window) &&
                 (!s.hasLengths || double(j) < lengths.at({b}));
        };
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
          if (counts(j))
            score[j] = dot / std::sqrt(double(s.headDim)) + (s.hasMask ? mask.at({i, j}) : 0);
          largest = std::max(largest, score[j]);
        }
        if (largest == -INFINITY)
          continue;
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
