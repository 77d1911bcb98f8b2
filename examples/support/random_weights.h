// SPDX-License-Identifier: Apache-2.0
//
// Random weights for an untrained model: seeded, scaled so that activations keep their magnitude from layer to layer,
// as a safetensors image in memory. random_weights({CHAR_GPT_WEIGHTS(SUPPORT_WEIGHT)}, seed).
#pragma once

#include "safetensors.h"

#include <cmath>
#include <random>
#include <set>

namespace support {

/// A row of the header's table of weights; "{}" in the name is replaced by the number of the copy.
struct Weight {
  std::string name;
  std::int64_t copies;
  std::vector<std::int64_t> shape;
};
#define SUPPORT_WEIGHT(name, type, copies, ...) ::support::Weight{name, copies, {__VA_ARGS__}},

/// Returns the tensors of a file with these weights.
inline std::vector<Tensor> tensors_of(const std::vector<Weight> &weights) {
  std::vector<Tensor> tensors;
  std::set<std::string> known; // a file has a tied weight once
  for (const Weight &weight : weights)
    for (std::int64_t copy = 0; copy < weight.copies; ++copy) {
      Tensor tensor{weight.name, weight.shape};
      if (std::size_t hole = tensor.name.find("{}"); hole != std::string::npos)
        tensor.name.replace(hole, 2, std::to_string(copy));
      if (known.insert(tensor.name).second)
        tensors.push_back(std::move(tensor));
    }
  return tensors;
}

inline std::vector<std::byte> random_weights(const std::vector<Weight> &weights, unsigned seed) {
  const std::vector<Tensor> tensors = tensors_of(weights);
  std::mt19937 random(seed);
  return make_image(tensors, [&](std::size_t i, std::span<float> values) {
    const Tensor &tensor = tensors[i];
    const bool isVector = tensor.shape.size() == 1, isScale = isVector && tensor.name.ends_with("weight");
    const double inputs = static_cast<double>(values.size()) / static_cast<double>(tensor.shape[0]);
    const float center = isScale ? 1 : 0, spread = static_cast<float>(isVector ? 0.02 : std::sqrt(3 / inputs));
    for (float &value : values)
      value = center + spread * (static_cast<float>(random()) / 2147483648.0f - 1);
  });
}

} // namespace support
