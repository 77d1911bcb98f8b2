// SPDX-License-Identifier: Apache-2.0
//
// Samples the next token from logits: the most likely one, or one from softmax(logits / temperature) with a seeded
// generator, from the `top_k` most likely ones (Fan et al. 2018) or from the smallest set with a total probability of
// `top_p` (Holtzman et al. 2020).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

namespace support {

struct SamplerOptions {
  double temperature = 1; // 0: the most likely token
  std::size_t top_k = 0;  // 0: all
  double top_p = 1;       // in (0, 1]
  std::uint64_t seed = 1;
};

class Sampler {
public:
  explicit Sampler(const SamplerOptions &options) : options(options), random(options.seed) {
    if (!(options.temperature >= 0) || !(options.top_p > 0 && options.top_p <= 1))
      throw std::runtime_error(
          "sampling: temperature or top_p out of range; expected a temperature of at least 0, a top_p in (0, 1]");
  }

  /// Returns the sampled token. Of equal logits the first comes first.
  std::int32_t operator()(std::span<const float> logits) {
    if (options.temperature == 0)
      return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    order.resize(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const std::size_t kept = options.top_k == 0 ? logits.size() : std::min(options.top_k, logits.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
        [&](std::int32_t a, std::int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    probabilities.resize(kept);
    const double largest = logits[order[0]];
    for (std::size_t i = 0; i < kept; ++i)
      probabilities[i] = std::exp((static_cast<double>(logits[order[i]]) - largest) / options.temperature);
    const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
    // The last one kept is the first that reaches the probability.
    double reached = 0;
    std::size_t count = 0;
    while (count < kept && reached < options.top_p * sum)
      reached += probabilities[count++];
    // Not std::discrete_distribution, whose results differ between C++ libraries.
    double drawn = uniform() * reached;
    for (std::size_t i = 0; i + 1 < count; ++i)
      if ((drawn -= probabilities[i]) < 0)
        return order[i];
    return order[count - 1];
  }

private:
  /// Returns a number in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(random() >> 11) * 0x1p-53; }

  SamplerOptions options;
  std::mt19937_64 random;
  std::vector<std::int32_t> order;
  std::vector<double> probabilities;
};

} // namespace support
