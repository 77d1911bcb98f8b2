// SPDX-License-Identifier: Apache-2.0
// A model whose activations are int8, compiled for each instruction set alone: whole libraries give every bit that
// whole numbers and f32 in plain loops give, and so the same ones.
#include "int8_rows_v2.h"
#include "int8_rows_v3.h"
#include "int8_rows_v4.h"
#include "int8_rows_v4_vnni.h"
#include "session.h"
#include "short_floats.h"
#include "support.h"
#include <algorithm>
#include <span>

namespace kiln::testing {
namespace {

using Floats = std::vector<float>;

/// Rows of whole numbers, a scale each.
struct Quantized {
  std::vector<int> numbers;
  Floats scales;
};

Quantized quantize(const Floats &x, std::size_t depth) {
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

/// x w^T + bias, w having a row for each output.
Floats linear(const Floats &x, const Floats &w, const Floats &bias, std::size_t depth) {
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

/// A group of a stored weight: (numbers - zero) * scale.
struct Group {
  std::vector<int> numbers;
  int zero = 8;
  float scale = 0;
};

Group quantizeGroup(std::span<const float> w, bool hasZero) {
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

/// x w^T + bias with a weight of int4.
Floats grouped(const Floats &x, const Floats &w, const Floats &bias, std::size_t depth, std::size_t size,
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

Floats weight(const char *name, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  const CounterWeight value(name, shape);
  Floats values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(value(i)));
  return values;
}

Floats transposed(const Floats &x, std::size_t columns) {
  Floats result;
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t i = column; i < x.size(); i += columns)
      result.push_back(x[i]);
  return result;
}

using Results = std::array<Floats, 5>;

Results expectedOf(const Floats &x) {
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

/// The results of one library; nothing where the CPU lacks its instruction set.
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

TEST(Int8Rows, GiveTheSameBitsOnEachInstructionSet) {
  for (std::size_t rows : {1, 2, 7, 31, 32, 33, 100, 300}) {
    SCOPED_TRACE(rows);
    Floats x;
    for (std::size_t i = 0; i < rows * 77; ++i)
      x.push_back(i / 77 == 1 ? 0.0f
                              : static_cast<float>(counter_uniform("int8 rows", i) * static_cast<double>(i % 5)));
    const Results expected = expectedOf(x);
    const Results v2 = run(KILN_TEST_LIBRARY(int8_rows_v2, INT8_ROWS_V2_WEIGHTS), x, int8_rows_v2_forward);
    EXPECT_EQ(v2, expected);
    for (const Results &other :
         {run(KILN_TEST_LIBRARY(int8_rows_v3, INT8_ROWS_V3_WEIGHTS), x, int8_rows_v3_forward),
          run(KILN_TEST_LIBRARY(int8_rows_v4, INT8_ROWS_V4_WEIGHTS), x, int8_rows_v4_forward),
          run(KILN_TEST_LIBRARY(int8_rows_v4_vnni, INT8_ROWS_V4_VNNI_WEIGHTS), x, int8_rows_v4_vnni_forward)})
      if (!other[0].empty())
        EXPECT_EQ(other, expected);
  }
}

TEST(Int8Rows, WithoutNumbersAreNaN) {
  Floats x(3 * 77, 1);
  x[77 + 5] = std::numeric_limits<float>::quiet_NaN();
  x[2 * 77] = std::numeric_limits<float>::infinity();
  const Results y = run(KILN_TEST_LIBRARY(int8_rows_v2, INT8_ROWS_V2_WEIGHTS), x, int8_rows_v2_forward);
  for (std::size_t i = 0; i < y[0].size(); ++i)
    EXPECT_EQ(std::isnan(y[0][i]), i >= 51) << i;
  for (std::size_t i = 0; i < y[2].size(); ++i)
    EXPECT_EQ(std::isnan(y[2][i]), i >= 9) << i;
  for (std::size_t i = 0; i < y[3].size(); ++i)
    EXPECT_EQ(std::isnan(y[3][i]), i >= 51) << i;
}

} // namespace
} // namespace kiln::testing
