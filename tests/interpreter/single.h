// SPDX-License-Identifier: Apache-2.0
//
// Plain f32 implementations of some ops, each in the variants that a compiler may choose: sums in several orders, with
// or without fused multiply-adds, functions with their permitted error, softmax in blocks with a running maximum,
// Winograd convolution. The interpreter's error bounds must cover all of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace kiln::interpreter::single {

using Floats = std::vector<float>;

/// One random variant of each implementation, chosen by a seed.
class Way {
public:
  explicit Way(unsigned seed) : random(seed) {}

  /// Computes a dot product: in order, backwards, shuffled, in lanes, pairwise; fused or not.
  float dot(const float *a, std::ptrdiff_t strideA, const float *b, std::ptrdiff_t strideB, std::size_t n) {
    const int way = pick(5);
    const bool isFused = pick(2) != 0;
    auto step = [&](float sum, std::size_t i) {
      const float x = a[static_cast<std::ptrdiff_t>(i) * strideA], y = b[static_cast<std::ptrdiff_t>(i) * strideB];
      return isFused ? std::fma(x, y, sum) : sum + x * y;
    };
    const std::size_t lanes = way == 3 ? 8 : way == 4 ? 16 : 1;
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i)
      order[i] = way == 1 ? n - 1 - i : i;
    if (way == 2)
      std::shuffle(order.begin(), order.end(), random);
    Floats sums(lanes, 0.0f);
    for (std::size_t i = 0; i < n; ++i)
      sums[i % lanes] = step(sums[i % lanes], order[i]);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i)
        sums[i] += sums[i + half];
    return sums[0];
  }
  float sum(const Floats &x) {
    const float one = 1;
    return dot(x.data(), 1, &one, 0, x.size());
  }

  /// Returns a function's value in f64 with the error of a polynomial.
  float function(double value) { return static_cast<float>(value * (1 + 3e-7 * unit())); }
  float exp(float x) { return function(std::exp(double{x})); }
  double unit() { return std::uniform_real_distribution<double>(-1, 1)(random); }
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); }

  void softmax(Floats &row) {
    const std::size_t block = pick(2) ? row.size() : 3;
    float most = -std::numeric_limits<float>::infinity(), total = 0;
    for (std::size_t begin = 0; begin < row.size(); begin += block) {
      const std::size_t end = std::min(begin + block, row.size());
      const float next = std::max(most, *std::max_element(row.begin() + begin, row.begin() + end));
      total *= exp(most - next);
      for (std::size_t i = begin; i < end; ++i)
        total += exp(row[i] - next);
      most = next;
    }
    const float inverse = 1 / total;
    for (float &x : row)
      x = pick(2) ? exp(x - most) * inverse : exp(x - most) / total;
  }

  void layerNorm(Floats &row, const Floats &weight, const Floats &bias, float epsilon) {
    const auto n = static_cast<float>(row.size());
    const float mean = sum(row) / n;
    Floats differences;
    for (float x : row)
      differences.push_back(x - mean);
    const float variance = dot(differences.data(), 1, differences.data(), 1, row.size()) / n;
    const float root = 1 / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = differences[i] * root * weight[i] + bias[i];
  }
  void rmsNorm(Floats &row, const Floats &weight, float epsilon) {
    const float mean = dot(row.data(), 1, row.data(), 1, row.size()) / static_cast<float>(row.size());
    const float root = 1 / std::sqrt(mean + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = row[i] * root * weight[i];
  }

  float gelu(float x) {
    const float half = x * 0.5f, size = std::abs(half);
    return size * function(std::erf(double{size} * std::numbers::sqrt2)) + half;
  }
  float silu(float x) { return x / (1 + exp(-x)); }
  float sigmoid(float x) { return 1 / (1 + exp(-x)); }

private:
  std::mt19937 random;
};

/// F(2 x 2, 3 x 3) of an image [height, width, channels] of even dimensions plus 2, with a weight [outputs, channels,
/// 3, 3].
inline Floats winograd(const Floats &image, std::int64_t height, std::int64_t width, std::int64_t channels,
                       const Floats &weight, std::int64_t outputs) {
  static constexpr float B[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static constexpr float G[4][3] = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};
  static constexpr float A[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
  // transform(m, x) = m x m^T
  auto transform = [](const auto &m, std::size_t rows, std::size_t inner, const Floats &x) {
    Floats half(rows * inner), whole(rows * rows);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < inner; ++j)
        for (std::size_t k = 0; k < inner; ++k)
          half[i * inner + j] += m[i][k] * x[k * inner + j];
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < rows; ++j)
        for (std::size_t k = 0; k < inner; ++k)
          whole[i * rows + j] += half[i * inner + k] * m[j][k];
    return whole;
  };
  Floats result(static_cast<std::size_t>((height - 2) * (width - 2) * outputs));
  for (std::int64_t i = 0; i < height - 2; i += 2)
    for (std::int64_t j = 0; j < width - 2; j += 2)
      for (std::int64_t o = 0; o < outputs; ++o) {
        Floats sums(16, 0.0f);
        for (std::int64_t c = 0; c < channels; ++c) {
          Floats tile(16), filter(&weight[(o * channels + c) * 9], &weight[(o * channels + c) * 9] + 9);
          for (std::int64_t k = 0; k < 16; ++k)
            tile[k] = image[((i + k / 4) * width + j + k % 4) * channels + c];
          const Floats d = transform(B, 4, 4, tile), g = transform(G, 4, 3, filter);
          for (std::size_t k = 0; k < 16; ++k)
            sums[k] += d[k] * g[k];
        }
        const Floats four = transform(A, 2, 4, sums);
        for (std::int64_t k = 0; k < 4; ++k)
          result[((i + k / 2) * (width - 2) + j + k % 2) * outputs + o] = four[k];
      }
  return result;
}

} // namespace kiln::interpreter::single
