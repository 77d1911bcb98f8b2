// SPDX-License-Identifier: Apache-2.0
//
// Numbers whose sums and scores are large: attention weights of scores beyond the largest f16, and norms and means of
// numbers far from 0, compared with loops in f64.
#include "ops.h"

#include <bit>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include KILN_OPS_HEADER(ops_functions)

namespace kiln::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

auto &session() {
  static Session session(KILN_OPS_LIBRARY(ops_functions, OPS_FUNCTIONS));
  return session;
}
#define ENTRY(name) KILN_OPS_ENTRY(ops_functions, name)

float ofHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31)
    return mantissa ? std::nanf("") : bits >> 15 ? -INFINITY : INFINITY;
  const float size = std::ldexp(static_cast<float>(exponent ? mantissa + 1024 : mantissa), std::max(exponent, 1) - 25);
  return bits >> 15 ? -size : size;
}

float ofBfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// Compares the weights of queries [3, depth] and keys [5, depth] with loops in f64, without and with a mask [3, 5].
void expectWeights(float (*valueOf)(std::uint16_t), const std::vector<std::uint16_t> &q,
                   const std::vector<std::uint16_t> &k, const std::vector<std::uint16_t> &m,
                   std::span<const std::uint16_t> plain, std::span<const std::uint16_t> masked, double tolerance) {
  const std::size_t depth = q.size() / 3;
  for (std::size_t i = 0; i < 3; ++i) {
    double scores[2][5], most[2] = {-infinity, -infinity}, sums[2] = {0, 0};
    for (std::size_t j = 0; j < 5; ++j) {
      double score = 0;
      for (std::size_t d = 0; d < depth; ++d)
        score += static_cast<double>(valueOf(q[i * depth + d])) * valueOf(k[j * depth + d]) / 256;
      scores[0][j] = score;
      scores[1][j] = score + valueOf(m[i * 5 + j]);
      for (int s : {0, 1})
        most[s] = std::fmax(most[s], scores[s][j]);
    }
    for (std::size_t j = 0; j < 5; ++j)
      for (int s : {0, 1})
        sums[s] += std::exp(scores[s][j] - most[s]);
    for (std::size_t j = 0; j < 5; ++j) {
      SCOPED_TRACE("query " + std::to_string(i) + ", key " + std::to_string(j));
      EXPECT_NEAR(valueOf(plain[i * 5 + j]), std::exp(scores[0][j] - most[0]) / sums[0], tolerance);
      EXPECT_NEAR(valueOf(masked[i * 5 + j]), std::exp(scores[1][j] - most[1]) / sums[1], tolerance);
    }
  }
}

// Scores are exactly about 125,000; the largest f16 is 65504.
TEST(Functions, AttentionWeightsOfLargeScores) {
  constexpr std::uint16_t thousand = 0x63d0; // its neighbours differ by half a unit
  constexpr std::size_t depth = 32;
  std::vector<std::uint16_t> q(3 * depth, thousand), k(5 * depth, thousand), m(3 * 5, 0);
  q[1 * depth] = 0; // a row with smaller scores
  k[1 * depth + 2] = thousand + 1;
  k[2 * depth + 5] = thousand - 1;
  k[4 * depth + 7] = thousand + 1;
  m[0] = 0x3c00; // 1
  m[4] = 0xfc00; // -infinity
  Input<std::uint16_t> queries(q), keys(k), mask(m);
  Output<std::uint16_t> plain(15), masked(15), result(3 * depth), clamped(15);
  session().runWith({1}, ENTRY(weights), queries, keys, mask, plain, masked, result, clamped);
  expectWeights(ofHalf, q, k, m, plain.values(), masked.values(), 1e-3);
  for (std::size_t i = 0; i < 3; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 5; ++j)
      total += ofHalf(clamped.values()[i * 5 + j]); // f16 scores saturate at its largest number
    EXPECT_NEAR(total, 1, 5e-3);
    EXPECT_NEAR(ofHalf(result.values()[i * depth]), 1000, 1);
  }
}

// A bf16 score of that size would be rounded to a multiple of 512, while the scores of different keys differ by 1 or 2.
TEST(Functions, AttentionWeightsOfLargeBfloatScores) {
  constexpr std::uint16_t thousand = 0x447a; // its neighbours differ by four units
  constexpr std::size_t depth = 32;
  std::vector<std::uint16_t> q(3 * depth, thousand), k(5 * depth, thousand), m(3 * 5, 0);
  for (std::size_t i = 0; i < 3; ++i)
    q[i * depth + 5] = 0x4280; // 64
  q[1 * depth] = 0;            // a row with smaller scores
  k[1 * depth + 5] = thousand + 1;
  k[2 * depth + 5] = thousand - 1;
  k[4 * depth + 5] = thousand + 2;
  m[0] = 0x3f80; // 1
  m[4] = 0xff80; // -infinity
  Input<std::uint16_t> queries(q), keys(k), mask(m);
  Output<std::uint16_t> plain(15), masked(15), result(3 * depth);
  session().runWith({1}, ENTRY(bfloat_weights), queries, keys, mask, plain, masked, result);
  expectWeights(ofBfloat, q, k, m, plain.values(), masked.values(), 4e-3); // a rounding, 2e-3, and that of f32 scores
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(ofBfloat(result.values()[i * depth]), 1000, 4);
}

// Saturated f16 scores are NaN if a factor is NaN, and so are their weights.
TEST(Functions, AttentionWeightsOfNaN) {
  constexpr std::size_t depth = 32;
  std::vector<std::uint16_t> q(3 * depth, 0x3c00), k(5 * depth, 0x3c00), m(3 * 5, 0);
  q[1 * depth + 7] = 0x7e00;
  Input<std::uint16_t> queries(q), keys(k), mask(m);
  Output<std::uint16_t> plain(15), masked(15), result(3 * depth), clamped(15);
  session().runWith({1}, ENTRY(weights), queries, keys, mask, plain, masked, result, clamped);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 5; ++j)
      for (const auto *weights : {&plain, &masked, &clamped}) {
        const float weight = ofHalf(weights->values()[i * 5 + j]);
        EXPECT_TRUE(i == 1 ? std::isnan(weight) : std::fabs(weight - 0.2f) < 1e-3f) << i << " " << j << ": " << weight;
      }
  for (std::size_t i = 0; i < 3 * depth; ++i)
    EXPECT_EQ(std::isnan(ofHalf(result.values()[i])), i / depth == 1) << i;
}

// The error must be that of an exactly summed mean, rounded to f32: half a unit of 2^-10 at 10,000. The sum, about
// 7.7e6, has units of 1/2, some of which its roundings lose. Sequential summation of 769 terms loses 7 units and more.
void expectNorms(double deviation, double most) {
  constexpr std::size_t rows = 64, width = 769;
  constexpr double epsilon = 1e-5;
  std::normal_distribution<double> normal(10000, deviation);
  std::vector<float> x(rows * width), transposed(rows * width);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < width; ++i)
      transposed[i * rows + r] = x[r * width + i] = static_cast<float>(normal(generator()));
  Input<float> given(x), columns(transposed), weight(std::vector<float>(width, 1)), bias(std::vector<float>(width, 0));
  Output<float> byRow(rows * width), byColumn(rows * width), meansOfColumns(rows), meansOfRows(rows);
  session().runWith({1}, ENTRY(norms), given, columns, weight, bias, byRow, byColumn, meansOfColumns, meansOfRows);
  double errors[4] = {};
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < width; ++i)
      mean += x[r * width + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      squares += (x[r * width + i] - mean) * (x[r * width + i] - mean);
    const double scale = 1 / std::sqrt(squares / width + epsilon);
    for (std::size_t i = 0; i < width; ++i) {
      const double expected = (x[r * width + i] - mean) * scale;
      errors[0] = std::fmax(errors[0], std::fabs(byRow.values()[r * width + i] - expected));
      errors[1] = std::fmax(errors[1], std::fabs(byColumn.values()[r * width + i] - expected));
    }
    errors[2] = std::fmax(errors[2], std::fabs(meansOfColumns.values()[r] - mean));
    errors[3] = std::fmax(errors[3], std::fabs(meansOfRows.values()[r] - mean));
  }
  const char *names[] = {"layer_norm", "layer_norm of columns", "mean of columns", "mean of rows"};
  for (int i = 0; i < 4; ++i) {
    std::printf("%s, deviation %g: %.2g\n", names[i], deviation, errors[i]);
    EXPECT_LE(errors[i], i < 2 ? most : 6e-3) << names[i] << ", deviation " << deviation << ", seed " << seed();
  }
}

TEST(Functions, NormsOfNumbersWithALargeMean) {
  expectNorms(1, 6e-3);
  // The error of the mean, half a unit, counts a hundred times: PyTorch's f32 is 0.15 to 0.17 off, a plain sum was 1.3
  // off.
  expectNorms(0.01, 0.06);
}

// A mean that is off by one unit of 2^-10 would give 0.3: it is divided by the root of epsilon.
TEST(Functions, NormsOfEqualNumbersAreZero) {
  constexpr std::size_t rows = 64, width = 769;
  for (float number : {10000.1f, -300.1f, 1000000.3f, 1e-3f, 3e10f}) {
    SCOPED_TRACE(number);
    Input<float> x(std::vector<float>(rows * width, number)), columns(std::vector<float>(rows * width, number)),
        weight(std::vector<float>(width, 1)), bias(std::vector<float>(width, 0));
    Output<float> byRow(rows * width), byColumn(rows * width), meansOfColumns(rows), meansOfRows(rows);
    session().runWith({1}, ENTRY(norms), x, columns, weight, bias, byRow, byColumn, meansOfColumns, meansOfRows);
    for (const Output<float> *output : {&byRow, &byColumn})
      for (float value : output->values())
        ASSERT_EQ(value, 0);
  }
}

TEST(Functions, MeansOfImagesOfLargeNumbers) {
  constexpr std::size_t channels = 64, pixels[] = {24 * 32, 640 * 2, 2 * 640};
  std::normal_distribution<double> normal(10000, 1);
  std::vector<std::vector<float>> images;
  for (std::size_t count : pixels) {
    images.emplace_back(count * channels);
    for (float &value : images.back())
      value = static_cast<float>(normal(generator()));
  }
  Input<float> x(images[0]), y(images[1]), z(images[2]);
  Output<float> means[] = {Output<float>(channels), Output<float>(channels), Output<float>(channels)};
  session().runWith({1}, ENTRY(images), x, y, z, means[0], means[1], means[2]);
  for (int i = 0; i < 3; ++i) {
    double error = 0;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      double mean = 0;
      for (std::size_t pixel = 0; pixel < pixels[i]; ++pixel)
        mean += images[i][pixel * channels + channel] / static_cast<double>(pixels[i]);
      error = std::fmax(error, std::fabs(means[i].values()[channel] - mean));
    }
    std::printf("image %d: %.2g\n", i, error);
    EXPECT_LE(error, 6e-3) << "image " << i << ", seed " << seed();
  }
}

} // namespace
} // namespace kiln::testing
