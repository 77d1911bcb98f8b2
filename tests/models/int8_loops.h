// SPDX-License-Identifier: Apache-2.0
//
// The exact expected results of libraries of int8_rows.cpp: integers and f32 in plain loops.
#pragma once

#include "session.h"
#include "stored_forms.h"

namespace kiln::testing {

/// Computes x w^T + bias, where w has a row for each output.
inline Floats linear(const Floats &x, const Floats &w, const Floats &bias, std::size_t depth) {
  const Quantized rows = quantize(x, depth), weights = quantize(w, depth);
  Floats y;
  for (std::size_t row = 0; row < rows.scales.size(); ++row)
    for (std::size_t n = 0; n < weights.scales.size(); ++n) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < depth; ++k)
        sum += rows.numbers[row * depth + k] * weights.numbers[n * depth + k];
      const volatile float product = static_cast<float>(sum) * weights.scales[n];
      const volatile float scaled = product * rows.scales[row];
      y.push_back(bias.empty() ? scaled : scaled + bias[n]);
    }
  return y;
}

/// Computes x w^T + bias with an int4 weight.
inline Floats grouped(const Floats &x, const Floats &w, const Floats &bias, std::size_t depth, std::size_t size,
                      bool hasZero) {
  const Quantized rows = quantize(x, depth);
  Floats y;
  for (std::size_t row = 0; row < rows.scales.size(); ++row)
    for (std::size_t n = 0; n < w.size() / depth; ++n) {
      volatile float sum = 0;
      for (std::size_t first = 0; first < depth; first += size) {
        const Group group = quantizeGroup(std::span(w).subspan(n * depth + first, size), hasZero);
        std::int32_t products = 0;
        for (std::size_t k = 0; k < size; ++k)
          products += rows.numbers[row * depth + first + k] * (group.numbers[k] - group.zero);
        const volatile float scaled = static_cast<float>(products) * group.scale;
        sum = sum + scaled;
      }
      const volatile float scaled = sum * rows.scales[row];
      y.push_back(bias.empty() ? scaled : scaled + bias[n]);
    }
  return y;
}

using Results = std::array<Floats, 5>;

inline Results expectedOf(const Floats &x) {
  Results y;
  y[0] = linear(x, weight("left.weight", {51, 77}), weight("left.bias", {51}), 77);
  y[1] = linear(x, transposed(weight("right.weight", {77, 130}), 130), {}, 77);
  Floats positive = y[1];
  for (float &value : positive)
    value = std::max(value, 0.0f);
  y[2] = linear(positive, weight("last.weight", {9, 130}), weight("last.bias", {9}), 130);
  Floats some;
  for (std::size_t i = 0; i < y[1].size(); ++i)
    if (i % 130 >= 1 && i % 130 <= 128)
      some.push_back(y[1][i]);
  y[3] = grouped(some, weight("four.weight", {51, 128}), weight("four.bias", {51}), 128, 32, false);
  y[4] = grouped(some, transposed(weight("zero.weight", {128, 70}), 70), {}, 128, 64, true);
  return y;
}

/// Returns the results of one library, or nothing if the CPU lacks its instruction set.
template <class Handle>
Results run(Library<Handle> library, const Floats &x,
            kiln_status_t (*forward)(const Handle *, const kiln_call_t *, std::int64_t, const float *, float *, float *,
                                     float *, float *, float *)) {
  Handle *probe = nullptr;
  const kiln_status_t status = library.create(nullptr, &probe, nullptr);
  library.destroy(probe);
  if (status == KILN_UNSUPPORTED_CPU)
    return {};
  Session<Handle> session(std::move(library));
  const auto rows = static_cast<std::int64_t>(x.size() / 77);
  Output<float> left(rows * 51), right(rows * 130), both(rows * 9), four(rows * 51), zero(rows * 70);
  session.run(forward, rows, Input(x), left, right, both, four, zero);
  auto values = [](Output<float> &output) { return Floats(output.values().begin(), output.values().end()); };
  return {values(left), values(right), values(both), values(four), values(zero)};
}

/// Returns rows of 77 numbers, the second of which is all zeros.
inline Floats int8Input(std::size_t rows) {
  Floats x;
  for (std::size_t i = 0; i < rows * 77; ++i)
    x.push_back(i / 77 == 1 ? 0.0f : static_cast<float>(counter_uniform("int8 rows", i) * static_cast<double>(i % 5)));
  return x;
}

} // namespace kiln::testing
