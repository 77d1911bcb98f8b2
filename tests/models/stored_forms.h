// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights by plain loops (dsl/SPEC.md, Stored weights).
#pragma once

#include "half_floats.h"
#include "support.h"
#include <algorithm>
#include <span>

namespace kiln::testing {

using Floats = std::vector<float>;

/// Rows of integers, with one scale per row.
struct Quantized {
  std::vector<int> numbers;
  Floats scales;
};

inline Quantized quantize(const Floats &x, std::size_t depth) {
  Quantized result{std::vector<int>(x.size()), Floats(x.size() / depth)};
  for (std::size_t row = 0; row < result.scales.size(); ++row) {
    float &scale = result.scales[row];
    for (std::size_t k = 0; k < depth; ++k)
      scale = std::max(scale, std::fabs(x[row * depth + k]));
    scale /= 127;
    for (std::size_t k = 0; k < depth && scale != 0; ++k)
      result.numbers[row * depth + k] =
          static_cast<int>(std::clamp(std::nearbyint(x[row * depth + k] / scale), -127.0f, 127.0f));
  }
  return result;
}

/// A quantisation group: (numbers - zero) * scale.
struct Group {
  std::vector<int> numbers;
  int zero = 8;
  float scale = 0;
};

inline Group quantizeGroup(std::span<const float> w, bool hasZero) {
  Group group;
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  const float least = std::min(*low, 0.0f), most = std::max(*high, 0.0f);
  const float largest =
      *std::max_element(w.begin(), w.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  group.scale = from_f16(to_f16(hasZero ? (most - least) / 15 : largest / -8));
  auto whole = [&](float x) { return group.scale == 0 ? 0 : static_cast<int>(std::nearbyint(x / group.scale)); };
  group.zero = hasZero ? std::clamp(whole(-least), 0, 15) : 8;
  for (float x : w)
    group.numbers.push_back(std::clamp(whole(x) + group.zero, 0, 15));
  return group;
}

/// Returns the values of a weight from the counter.
inline Floats weight(const char *name, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  const CounterWeight value(name, shape);
  Floats values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(value(i)));
  return values;
}

inline Floats transposed(const Floats &x, std::size_t columns) {
  Floats result;
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t i = column; i < x.size(); i += columns)
      result.push_back(x[i]);
  return result;
}

} // namespace kiln::testing
