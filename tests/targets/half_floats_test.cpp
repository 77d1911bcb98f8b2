// SPDX-License-Identifier: Apache-2.0
//
// Kernels of f16 and bf16 on every instruction set: conversions of all numbers, and each strategy compared with loops
// in f64, with results rounded once.
#include "HalfFloatKernel.h"
#include "RunnableTargets.h"
#include "compiler/schedule/SearchSpace.h"
#include "llvm/ADT/APFloat.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using Loop = std::function<void(const std::string &target, const HalfFloat &type)>;

void onAll(const Loop &loop) {
  for (const std::string &target : runnableTargets())
    for (const HalfFloat &type : halfFloats) {
      SCOPED_TRACE(target + " " + type.name);
      loop(target, type);
    }
}

std::string vectorOf(const std::string &element) { return "tensor<?x" + element + ", affine_map<()[s0] -> (s0)>>"; }

std::string castKernel(const HalfFloat &type, const std::string &from, const std::string &to) {
  const std::string x = vectorOf(from), y = vectorOf(to);
  return kernelOf(type, "%x: " + x, y, "%0 = kiln.cast %x : " + x + " -> " + y + "\nreturn %0", 70000);
}

/// Expects equality, where NaN equals NaN, and zeros have the same sign.
void expectSame(double got, double expected) {
  if (std::isnan(expected))
    ASSERT_TRUE(std::isnan(got)) << got;
  else
    ASSERT_TRUE(got == expected && std::signbit(got) == std::signbit(expected)) << got << ", not " << expected;
}

/// Returns all numbers of the type, including NaN, and one more, so that vectors have a tail.
Tensor everyNumber(const HalfFloat &type) {
  const llvm::fltSemantics &semantics =
      type.element == ElementType::f16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
  Tensor all = Tensor::zeros({(1 << 16) + 1});
  for (unsigned bits = 0; bits < 1 << 16; ++bits)
    all.values[bits] = llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToDouble();
  return all;
}

TEST(HalfFloats, EachNumberIsWidened) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const Tensor all = everyNumber(type);
    Kernel kernel(castKernel(type, "F", "f32"), target);
    const Tensor wide = kernel.run({all.shape[0]}, {all})[0];
    for (size_t i = 0; i < all.values.size(); ++i)
      expectSame(wide.values[i], all.values[i]);
  });
}

/// Returns f32 numbers around those of the type: each, the midpoints between neighbours, the f32 neighbours of all
/// these, and random numbers.
Tensor numbersToRound(const HalfFloat &type) {
  Tensor all = everyNumber(type), result = Tensor::zeros({0});
  auto add = [&](float x) {
    for (float each : {x, std::nextafterf(x, -INFINITY), std::nextafterf(x, INFINITY)})
      result.values.push_back(each);
  };
  for (size_t i = 0; i + 1 < all.values.size(); i += 5) {
    add(float(all.values[i]));
    add(float((all.values[i] + all.values[i + 1]) / 2));
  }
  std::mt19937 random(5);
  while (result.values.size() < 70000)
    result.values.push_back(std::bit_cast<float>(uint32_t(random())));
  result.values.resize(69999);
  for (double &value : result.values)
    if (std::abs(value) < 0x1p-126) // subnormal numbers may be flushed to zero
      value = 0;
  result.shape = {int64_t(result.values.size())};
  return result;
}

TEST(HalfFloats, EachNumberIsRounded) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const Tensor x = numbersToRound(type);
    Kernel kernel(castKernel(type, "f32", "F"), target);
    const Tensor got = kernel.run({x.shape[0]}, {x})[0];
    for (size_t i = 0; i < x.values.size(); ++i)
      expectSame(got.values[i], type.round(x.values[i]));
  });
}

// The whole expression is rounded once, with infinities and NaN as in f32.
TEST(HalfFloats, Pointwise) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const std::string x = rows(37);
    Kernel kernel(kernelOf(type, "%x: " + x + ", %y: " + x, x,
                           "%0 = kiln.mul %x, %y : (" + x + ", " + x + ") -> " + x + "\n%1 = kiln.add %0, %x : (" + x +
                               ", " + x + ") -> " + x + "\nreturn %1"),
                  target);
    std::vector<Tensor> in = {rounded(type, randomTensor({5, 37}, 100)), rounded(type, randomTensor({5, 37}, 100))};
    in[0].values[3] = INFINITY, in[1].values[3] = 2, in[0].values[40] = NAN, in[1].values[41] = -INFINITY,
    in[0].values[42] = 0x1p-24;
    in[0].values[43] = 60000, in[1].values[43] = 60000; // overflows f16, while f32 represents the product
    const Tensor got = kernel.run({5}, in)[0];
    for (size_t i = 0; i < got.values.size(); ++i) {
      const double x = in[0].values[i], y = in[1].values[i], sum = x * y + x;
      if (std::isfinite(sum) && std::isfinite(type.round(sum)))
        ASSERT_NEAR(got.values[i], sum, (type.unit + 0x1p-22) * (std::abs(x * y) + std::abs(x)) + 0x1p-25);
      else
        expectSame(got.values[i], type.round(sum));
    }
  });
}

// Moves preserve bits.
TEST(HalfFloats, RowsOfATable) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const std::string i = vectorOf("i32"), t = "tensor<31x51xF>", y = rows(51);
    Kernel kernel(kernelOf(type, "%i: " + i + ", %t: " + t, y,
                           "%0 = kiln.embedding %i, %t : (" + i + ", " + t + ") -> " + y + "\nreturn %0"),
                  target);
    std::vector<Tensor> in = {randomIntegers({61}, 0, 31), rounded(type, randomTensor({31, 51}))};
    in[1].values[7] = 0x1p-24; // a subnormal number of f16
    in[1].values[8] = -INFINITY, in[1].values[9] = NAN;
    const Tensor got = kernel.run({61}, in)[0];
    for (int64_t at = 0; at < 61 * 51; ++at)
      expectSame(got.values[at], in[1].values[int64_t(in[0].values[at / 51]) * 51 + at % 51]);
  });
}

/// Returns the default configuration; with many rows, and for one of the types in turn, also the ends of each
/// parameter.
std::vector<ScheduleConfig> configsOf(const std::string &text, const std::string &target, const HalfFloat &type,
                                      const char *strategy, bool hasManyRows) {
  const Schedulable schedulable = describe(text, target);
  EXPECT_EQ(schedulable.strategy, strategy);
  std::vector<ScheduleConfig> configs = configsToTry(schedulable.space, 0, target);
  if (type.element != ElementType::f16 || !hasManyRows)
    configs.resize(1);
  return configs;
}

void checkLinear(const std::string &target, const HalfFloat &type, int64_t m, const char *strategy) {
  const int inputs = 333, outputs = 45;
  const std::string x = rows(inputs), y = rows(outputs), w = "tensor<45x333xF, #kiln.tiled<0, 16>>", b = "tensor<45xF>";
  const std::string text = kernelOf(type, "%x: " + x + ", %w: " + w + ", %b: " + b, y,
                                    "%0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x + ", " + w + ", " + b +
                                        ") -> " + y + "\n%1 = kiln.relu %0 : " + y + "\nreturn %1",
                                    m < 8 ? 8 : 200);
  for (const ScheduleConfig &config : configsOf(text, target, type, strategy, m > 8)) {
    SCOPED_TRACE(toString(config));
    Kernel kernel(text, target, &config);
    std::vector<Tensor> in = {rounded(type, randomTensor({m, inputs})), rounded(type, randomTensor({45, 333})),
                              rounded(type, randomTensor({45}))};
    in[1].values[44 * 333 + 5] = INFINITY;
    const Tensor got = kernel.run({m}, in)[0];
    for (int64_t i = 0; i < m * outputs; ++i) {
      double sum = in[2].values[i % outputs];
      for (int k = 0; k < inputs; ++k)
        sum += in[0].values[i / outputs * inputs + k] * in[1].values[i % outputs * inputs + k];
      if (i % outputs == 44)
        ASSERT_EQ(got.values[i], std::max(sum, 0.0));
      else
        ASSERT_NEAR(got.values[i], std::max(sum, 0.0), type.unit * std::abs(sum) + 1e-4);
    }
  }
}

TEST(HalfFloats, Linear) {
  onAll([](const std::string &target, const HalfFloat &type) {
    checkLinear(target, type, 1, "skinny_gemm");
    checkLinear(target, type, 3, "skinny_gemm");
    checkLinear(target, type, 70, "contraction");
  });
}

// Both operands are computed, neither is a weight.
TEST(HalfFloats, Matmul) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const std::string a = rows(29), b = "tensor<29x18xF>", y = rows(18);
    const std::string text = kernelOf(type, "%a: " + a + ", %b: " + b, y,
                                      "%0 = kiln.matmul %a, %b : (" + a + ", " + b + ") -> " + y + "\nreturn %0");
    Kernel kernel(text, target);
    const std::vector<Tensor> in = {rounded(type, randomTensor({33, 29})), rounded(type, randomTensor({29, 18}))};
    const Tensor got = kernel.run({33}, in)[0];
    for (int i = 0; i < 33; ++i)
      for (int j = 0; j < 18; ++j) {
        double sum = 0;
        for (int k = 0; k < 29; ++k)
          sum += in[0].at({i, k}) * in[1].at({k, j});
        ASSERT_NEAR(got.at({i, j}), sum, type.unit * std::abs(sum) + 1e-5);
      }
  });
}

// 1024 plus 4000 times 1/4: in the type itself no addition would change the sum.
TEST(HalfFloats, SumsAreThoseOfF32) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const std::string x = rows(4001), y = vectorOf("F");
    Kernel kernel(kernelOf(type, "%x: " + x, y, "%0 = kiln.sum %x axis = 1 : (" + x + ") -> " + y + "\nreturn %0"),
                  target);
    Tensor in = Tensor::zeros({2, 4001});
    std::fill(in.values.begin(), in.values.end(), 0.25);
    in.values[0] = 1024;
    const Tensor got = kernel.run({2}, {in})[0];
    EXPECT_EQ(got.values[0], type.round(2024));
    EXPECT_EQ(got.values[1], type.round(1000.25));
  });
}

TEST(HalfFloats, Softmax) {
  onAll([](const std::string &target, const HalfFloat &type) {
    for (int width : {5, 129}) {
      const std::string x = rows(width);
      Kernel kernel(kernelOf(type, "%x: " + x, x, "%0 = kiln.softmax %x axis = 1 : " + x + "\nreturn %0"), target);
      const Tensor in = rounded(type, randomTensor({7, width}));
      const Tensor got = kernel.run({7}, {in})[0];
      for (int row = 0; row < 7; ++row) {
        double sum = 0;
        for (int i = 0; i < width; ++i)
          sum += std::exp(in.at({row, i}));
        for (int i = 0; i < width; ++i) {
          const double part = std::exp(in.at({row, i})) / sum;
          ASSERT_NEAR(got.at({row, i}), part, (type.unit + 1e-6) * part + 0x1p-25);
        }
      }
    }
  });
}

// Also in place: x + y is a result, and its norm is rounded once.
TEST(HalfFloats, NormOfASum) {
  onAll([](const std::string &target, const HalfFloat &type) {
    const int width = 67;
    const std::string x = rows(width), w = "tensor<67xF>";
    Kernel kernel(kernelOf(type, "%x: " + x + ", %y: " + x + ", %w: " + w + ", %b: " + w, x,
                           "%0 = kiln.add %x, %y : (" + x + ", " + x + ") -> " + x +
                               "\n%1 = kiln.layer_norm %0, %w, %b epsilon = 1.0e-5 : (" + x + ", " + w + ", " + w +
                               ") -> " + x + "\nreturn %1"),
                  target);
    const std::vector<Tensor> in = {rounded(type, randomTensor({9, width})), rounded(type, randomTensor({9, width})),
                                    rounded(type, randomTensor({width})), rounded(type, randomTensor({width}))};
    for (int aliased : {-1, 0}) {
      const Tensor got = kernel.run({9}, in, aliased)[0];
      for (int row = 0; row < 9; ++row) {
        std::vector<double> sums(width);
        double mean = 0, variance = 0;
        for (int i = 0; i < width; ++i)
          mean += (sums[i] = in[0].at({row, i}) + in[1].at({row, i})) / width;
        for (double sum : sums)
          variance += (sum - mean) * (sum - mean) / width;
        for (int i = 0; i < width; ++i) {
          const double scaled = (sums[i] - mean) / std::sqrt(variance + 1e-5) * in[2].values[i],
                       norm = scaled + in[3].values[i];
          // The sum may have been rounded before the norm.
          ASSERT_NEAR(got.at({row, i}), norm, type.unit * (std::abs(norm) + 4 * std::abs(scaled) + 2) + 1e-5);
        }
      }
    }
  });
}

void checkAttention(const std::string &target, const HalfFloat &type, int queries, const char *strategy) {
  const int heads = 2, headDim = 24, keys = 61;
  const std::string q = rows(48), k = "tensor<61x48xF>", y = "tensor<?x2x24xF, affine_map<()[s0] -> (s0, 2, 24)>>";
  const std::string text = kernelOf(type, "%q: " + q + ", %k: " + k + ", %v: " + k, y,
                                    "%0 = kiln.attention %q, %k, %v heads = 2 scale = 0.25 : (" + q + ", " + k + ", " +
                                        k + ") -> " + q + "\n%1 = kiln.reshape %0 : " + q + " -> " + y + "\nreturn %1",
                                    queries);
  for (const ScheduleConfig &config : configsOf(text, target, type, strategy, queries > 8)) {
    SCOPED_TRACE(toString(config));
    Kernel kernel(text, target, &config);
    const std::vector<Tensor> in = {rounded(type, randomTensor({queries, 48})), rounded(type, randomTensor({keys, 48})),
                                    rounded(type, randomTensor({keys, 48}))};
    const Tensor got = kernel.run({queries}, in)[0];
    for (int i = 0; i < queries; ++i)
      for (int h = 0; h < heads; ++h) {
        std::vector<double> weights(keys);
        double sum = 0;
        for (int j = 0; j < keys; ++j) {
          double score = 0;
          for (int c = h * headDim; c < (h + 1) * headDim; ++c)
            score += 0.25 * in[0].at({i, c}) * in[1].at({j, c});
          sum += weights[j] = std::exp(score);
        }
        for (int c = h * headDim; c < (h + 1) * headDim; ++c) {
          double value = 0;
          for (int j = 0; j < keys; ++j)
            value += weights[j] / sum * in[2].at({j, c});
          ASSERT_NEAR(got.at({i, h, c - h * headDim}), value, type.unit * std::abs(value) + 1e-5);
        }
      }
  }
}

TEST(HalfFloats, Attention) {
  onAll([](const std::string &target, const HalfFloat &type) {
    checkAttention(target, type, 1, "one_query");
    checkAttention(target, type, 37, "attention");
  });
}

void checkConvolution(const std::string &target, const HalfFloat &type, int channels, const char *strategy) {
  const int height = 11, width = 65, outputs = 33;
  const std::string c = std::to_string(channels),
                    x = "tensor<?x65x" + c + "xF, affine_map<()[s0] -> (s0, 65, " + c + ")>>",
                    y = "tensor<?x65x33xF, affine_map<()[s0] -> (s0, 65, 33)>>",
                    w = "tensor<33x" + c + "x3x3xF, #kiln.tiled<0, 16>>";
  const std::string text =
      kernelOf(type, "%x: " + x + ", %w: " + w, y,
               "%0 = kiln.conv2d %x, %w stride = [1, 1] padding = [1, 1] dilation = [1, 1] groups = 1 : (" + x + ", " +
                   w + ") -> " + y + "\nreturn %0",
               20);
  for (const ScheduleConfig &config : configsOf(text, target, type, strategy, false)) {
    SCOPED_TRACE(toString(config));
    Kernel kernel(text, target, &config);
    const std::vector<Tensor> in = {rounded(type, randomTensor({height, width, channels})),
                                    rounded(type, randomTensor({outputs, channels, 3, 3}))};
    const Tensor got = kernel.run({height}, in)[0];
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j)
        for (int o = 0; o < outputs; o += 7) {
          double sum = 0;
          for (int a = std::max(0, i - 1); a < std::min(height, i + 2); ++a)
            for (int b = std::max(0, j - 1); b < std::min(width, j + 2); ++b)
              for (int c = 0; c < channels; ++c)
                sum += in[0].at({a, b, c}) * in[1].at({o, c, a - i + 1, b - j + 1});
          ASSERT_NEAR(got.at({i, j, o}), sum, type.unit * std::abs(sum) + 1e-4);
        }
  }
}

TEST(HalfFloats, Convolution) {
  onAll([](const std::string &target, const HalfFloat &type) {
    checkConvolution(target, type, 5, "convolution");
    checkConvolution(target, type, 34, "winograd");
  });
}

} // namespace
} // namespace kiln::testing
