// SPDX-License-Identifier: Apache-2.0
//
// Weights for generated libraries as a safetensors image in memory, from the counter or given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::testing {

/// A row of a library's table of weights; with copies > 1 the name contains "{}".
struct WeightShape {
  std::string name;
  std::int64_t copies = 1;
  std::vector<std::int64_t> shape;
  std::string type = "f32";
};

/// A tensor of a weight file, whose values are rounded to its type.
struct Weight {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::string type = "f32"; // or "f16", "bf16"
};

/// Returns the weights with the counter's values, for an oracle.
std::vector<Weight> counterWeights(const std::vector<WeightShape> &weights);

/// A weight file in memory.
class WeightImage {
public:
  /// Creates an image of these weights with the counter's values.
  explicit WeightImage(const std::vector<WeightShape> &weights) : WeightImage(counterWeights(weights)) {}
  explicit WeightImage(const std::vector<Weight> &weights);

  const void *data() const { return words.data(); }
  std::size_t size() const { return bytes; }
  std::span<char> characters() { return {reinterpret_cast<char *>(words.data()), bytes}; }

private:
  std::vector<std::uint64_t> words; // aligned for f32, since the header's length is a multiple of 8
  std::size_t bytes = 0;
};

} // namespace kiln::testing
