// SPDX-License-Identifier: Apache-2.0
//
// The row strategy: softmax, norms, sums and argmax in one launch, of rows from one to some thousands of elements, with
// NaN and infinities; and the kernels that it must leave to other strategies.
#include "DeviceKernel.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

std::string rows(int width, const std::string &element = "f32") {
  return KernelText({{1, 100}}).type({"s0", std::to_string(width)}, element);
}
std::string column(const std::string &element = "f32") { return KernelText({{1, 100}}).type({"s0"}, element); }
std::string vector(int width) { return "tensor<" + std::to_string(width) + "xf32>"; }

/// Returns a kernel of kiln ops with up to `bound` rows.
std::string kernelOf(const std::string &arguments, const std::string &results, const std::string &body,
                     const std::string &attributes = "", int bound = 100) {
  return "func.func private @f(%s0: index, " + arguments + ") -> (" + results +
         ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, " + std::to_string(bound) + ">" + attributes +
         "} {\n" + body + "\n}\n";
}

/// Returns an op on rows along their last axis.
std::string along(const std::string &op, int width, const std::string &result, int bound = 100) {
  return kernelOf("%x: " + rows(width), result,
                  "  %0 = kiln." + op + " %x axis = 1 : (" + rows(width) + ") -> " + result +
                      "\n  return %0 : " + result,
                  "", bound);
}
std::string softmax(const std::string &op, int width, const std::string &attributes = "", int bound = 100) {
  return kernelOf("%x: " + rows(width), rows(width),
                  "  %0 = kiln." + op + " %x axis = 1 : " + rows(width) + "\n  return %0 : " + rows(width), attributes,
                  bound);
}

void expectRows(const DeviceKernel &kernel, size_t launches = 1, int64_t scratch = 0) {
  EXPECT_EQ(kernel.plan().strategy, "rows");
  EXPECT_EQ(kernel.plan().launches.size(), launches);
  EXPECT_EQ(kernel.plan().scratchBytes, scratch);
}

TEST(CudaRows, SoftmaxOfEveryWidth) {
  for (std::string op : {"softmax", "log_softmax"})
    for (int width : {1, 2, 3, 31, 32, 33, 257, 1025, 5000}) {
      SCOPED_TRACE(op + " of " + std::to_string(width));
      std::string text = softmax(op, width);
      DeviceKernel kernel(text);
      expectRows(kernel);
      for (int64_t m : {1, 2, 97})
        if (m * width < 50000)
          kernel.check({m}, randomInputs(text, {m}));
    }
}

TEST(CudaRows, EveryConfigOfTheSearchSpace) {
  for (int width : {33, 700, 2049}) {
    std::string text = softmax("softmax", width);
    for (int64_t threads : {32, 64, 128, 256, 512, 1024})
      for (int64_t perBlock : {1, 2, 4, 8, 16}) {
        if (threads > 32 && perBlock > 1)
          continue;
        ScheduleConfig config{{"rows_threads", threads}, {"rows_per_block", perBlock}};
        SCOPED_TRACE(std::to_string(width) + ": " + toString(config));
        DeviceKernel kernel(text, &config);
        EXPECT_EQ(kernel.plan().functions.front().threads, threads * perBlock);
        kernel.check({7}, randomInputs(text, {7}));
      }
  }
  ScheduleConfig wrong{{"rows_threads", 64}, {"rows_per_block", 2}};
  EXPECT_EQ(refusal(softmax("softmax", 33), &wrong), "rows schedule: invalid combination; expected rows_per_block = 1 "
                                                     "or rows_threads = 32, got rows_per_block=2 rows_threads=64");
}

TEST(CudaRows, DefaultsFollowTheLength) {
  auto threads = [](int width, int bound) {
    return DeviceKernel(softmax("softmax", width, "", bound)).plan().schedule.at("rows_threads");
  };
  EXPECT_EQ(threads(64, 4096), 32);
  EXPECT_EQ(threads(1024, 4096), 64);
  EXPECT_EQ(threads(1024, 8), 256) << "few rows";
  EXPECT_EQ(threads(50000, 4096), 1024);
}

TEST(CudaRows, ARowInRegistersIsLoadedOnce) {
  const std::string text = DeviceKernel(softmax("softmax", 512, "", 4096)).plan().images.back().text;
  size_t loads = 0;
  for (size_t at = 0; (at = text.find("ld.global", at + 1)) != std::string::npos;)
    ++loads;
  EXPECT_EQ(loads, 16U) << "512 elements, 32 threads";
}

TEST(CudaRows, InPlaceAndFarFromZero) {
  for (int width : {33, 257, 5000}) {
    SCOPED_TRACE(width);
    std::string text = softmax("softmax", width, ", kiln.inplace = array<i64: 0>");
    DeviceKernel kernel(text);
    expectRows(kernel);
    std::vector<Tensor> inputs = randomInputs(text, {5});
    for (size_t i = 0; i < inputs[0].values.size(); ++i)
      inputs[0].values[i] += i < size_t(width) ? 1e6 : i < size_t(2 * width) ? -1e6 : 80;
    kernel.check({5}, inputs);
  }
}

TEST(CudaRows, ARowWithNanOrOnlyMinusInfinity) {
  std::string text = softmax("softmax", 300);
  DeviceKernel kernel(text);
  std::vector<Tensor> inputs = randomInputs(text, {3});
  inputs[0].values[299] = std::nan("");
  for (int i = 300; i < 600; ++i)
    inputs[0].values[i] = i == 417 ? 1 : -INFINITY;
  const Tensor result = kernel.run({3}, inputs)[0];
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(std::isnan(result.values[i])) << i;
    EXPECT_EQ(result.values[300 + i], i == 117 ? 1 : 0) << i;
    EXPECT_TRUE(std::isfinite(result.values[600 + i])) << i;
  }
}

TEST(CudaRows, NormsWithTheSumBeforeThem) {
  for (std::string op : {"layer_norm", "rms_norm"})
    for (int width : {1, 67, 768, 3001}) {
      SCOPED_TRACE(op + " of " + std::to_string(width));
      const bool hasBias = op == "layer_norm";
      const std::string x = rows(width), w = vector(width), bias = hasBias ? ", " + w : "";
      std::string text = kernelOf("%x: " + x + ", %y: " + x + ", %w: " + w + ", %b: " + w, x + ", " + x,
                                  "  %0 = kiln.add %x, %y : (" + x + ", " + x + ") -> " + x + "\n  %1 = kiln." + op +
                                      " %0, %w" + (hasBias ? ", %b" : "") + " epsilon = 1.0e-5 : (" + x + ", " + w +
                                      bias + ") -> " + x + "\n  return %0, %1 : " + x + ", " + x,
                                  ", kiln.inplace = array<i64: 0, 1>");
      DeviceKernel kernel(text);
      expectRows(kernel);
      for (int64_t m : {1, 13})
        kernel.check({m}, randomInputs(text, {m}));
    }
}

TEST(CudaRows, RowsOfATableBeforeANorm) {
  const std::string x = rows(96), table = "tensor<7x96xf32>", w = vector(96);
  std::string text = kernelOf("%i: " + column("i32") + ", %t: " + table + ", %w: " + w + ", %b: " + w, x,
                              "  %0 = kiln.embedding %i, %t : (" + column("i32") + ", " + table + ") -> " + x +
                                  "\n  %1 = kiln.layer_norm %0, %w, %b epsilon = 1.0e-5 : (" + x + ", " + w + ", " + w +
                                  ") -> " + x + "\n  return %1 : " + x);
  DeviceKernel kernel(text);
  expectRows(kernel);
  kernel.check({9}, randomInputs(text, {9}, 0, 7));
}

TEST(CudaRows, TheLastRowBeforeANorm) {
  const std::string last = "tensor<1x700xf32>";
  const std::string text = kernelOf("%x: " + rows(700) + ", %w: " + vector(700), last,
                                    "  %0 = kiln.slice %x axis = 0 start = 0 at_end : " + rows(700) + " -> " + last +
                                        "\n  %1 = kiln.rms_norm %0, %w epsilon = 1.0e-05 : (" + last + ", " +
                                        vector(700) + ") -> " + last + "\n  return %1 : " + last);
  DeviceKernel kernel(text);
  expectRows(kernel);
  for (int64_t m : {1, 2, 97})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaRows, SumsMeansAndMaxima) {
  for (std::string op : {"sum", "mean", "max"})
    for (int width : {16, 33, 1025, 5000}) {
      SCOPED_TRACE(op + " of " + std::to_string(width));
      std::string text = along(op, width, column());
      DeviceKernel kernel(text);
      expectRows(kernel);
      for (int64_t m : {1, 7})
        kernel.check({m}, randomInputs(text, {m}));
    }
}

TEST(CudaRows, ArgmaxTakesTheFirst) {
  for (int width : {31, 1025}) {
    std::string text = along("argmax", width, column("i32"));
    DeviceKernel kernel(text);
    expectRows(kernel);
    std::vector<Tensor> inputs{Tensor::zeros({6, width})};
    auto at = [&](int row, int i) -> double & { return inputs[0].values[size_t(row) * width + i]; };
    at(1, 30) = at(1, 29) = at(1, 7) = 3;
    at(2, 12) = INFINITY, at(2, 22) = std::nan(""), at(2, 25) = std::nan("");
    for (int i = 0; i < width; ++i)
      at(3, i) = -INFINITY, at(4, i) = -i;
    at(5, 0) = -0.0;
    EXPECT_EQ(kernel.run({6}, inputs)[0].values, (std::vector<double>{0, 7, 22, 0, 0, 0}));
    kernel.check({6}, randomInputs(text, {6}));
  }
}

TEST(CudaRows, SeveralAxesTogether) {
  // The mean of the last two axes, and the difference from it.
  KernelText k({{1, 9}, {1, 9}});
  std::string type = k.type({"s0", "s1", "5", "7"}), kept = k.type({"s0", "s1"});
  Value x = k.argument(type);
  Value sum = k.reduce("pprr", {x}, kept, {"a, b, c, d", "a, b"}, "0.0 : f32",
                       "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value y = k.one("pppp", {x, sum}, type, {"a, b, c, d", "a, b", "a, b, c, d"},
                  "%n = arith.constant 35.0 : f32\n%m = arith.divf %x1, %n : f32\n%d = arith.subf %x0, %m : f32\n"
                  "linalg.yield %d : f32");
  std::string text = k.finish({y, sum}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel(text);
  expectRows(kernel);
  for (std::vector<int64_t> extents : {std::vector<int64_t>{1, 1}, {8, 3}})
    kernel.check(extents, randomInputs(text, extents), 1e-5);
}

TEST(CudaRows, ARowOfRunTimeLength) {
  KernelText k({{1, 20}, {0, 3000}});
  std::string type = k.type({"s0", "s1"});
  Value x = k.argument(type);
  Value sum = k.reduce("pr", {x}, k.type({"s0"}), {"a, b", "a"}, "2.5 : f32",
                       "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value y = k.one("pp", {x, sum}, type, {"a, b", "a", "a, b"}, "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32");
  std::string text = k.finish({y, sum});
  DeviceKernel kernel(text);
  expectRows(kernel);
  for (int64_t n : {1, 31, 511, 3000})
    kernel.check({3, n}, randomInputs(text, {3, n}), 1e-5);
  EXPECT_EQ(kernel.run({4, 0}, {Tensor::zeros({4, 0})})[1].values, std::vector<double>(4, 2.5));
}

/// Sums a row with `threads` threads: each adds its elements, then halves of warps are added, then warps.
float sumByThreads(const double *row, int width, int threads) {
  std::vector<float> parts(threads, -0.0F);
  parts[0] = 0;
  for (int i = 0; i < width; ++i)
    parts[i % threads] += float(row[i]);
  auto join = [&](int lanes) {
    for (int bits = lanes / 2; bits > 0; bits /= 2) {
      const std::vector<float> last = parts;
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i] = last[i] + last[i ^ size_t(bits)];
    }
  };
  join(32);
  for (int i = 0; i < threads / 32; ++i)
    parts[i] = parts[size_t(i) * 32];
  parts.resize(threads / 32);
  join(threads / 32);
  return parts[0];
}

TEST(CudaRows, SumsHaveOneOrder) {
  for (int width : {700, 5000, 20000})
    for (int threads : {32, 256, 1024}) {
      ScheduleConfig config{{"rows_threads", threads}, {"rows_per_block", 1}};
      std::string text = along("sum", width, column());
      std::vector<Tensor> inputs = randomInputs(text, {3});
      const Tensor sums = DeviceKernel(text, &config).run({3}, inputs)[0];
      for (int row = 0; row < 3; ++row)
        EXPECT_EQ(float(sums.values[row]), sumByThreads(&inputs[0].values[size_t(row) * width], width, threads))
            << width << " by " << threads;
    }
}

//===- Unsupported kernels -----------------------------------------------===//

/// Returns a reduction of rows of 40 elements.
DeviceKernel reduction(const std::string &start, const std::string &region, const std::string &maps = "a, b") {
  KernelText k({{1, 20}});
  Value x = k.argument(k.type({"s0", "40"}));
  std::string type = k.type({maps == "a, b" ? "s0" : "40"});
  Value y = k.reduce(maps == "a, b" ? "pr" : "rp", {x}, type, {"a, b", maps == "a, b" ? "a" : "b"}, start, region);
  return DeviceKernel(k.finish({y}));
}

TEST(CudaRows, OrderThatMatters) {
  const std::string yield = "\nlinalg.yield %s : f32";
  EXPECT_EQ(reduction("0.0 : f32", "%s = arith.addf %y0, %x0 : f32" + yield).plan().strategy, "rows");
  EXPECT_EQ(reduction("0.0 : f32", "%s = arith.addf %y0, %x0 {kiln.strict} : f32" + yield).plan().strategy, "loops");
  EXPECT_EQ(reduction("0.0 : f32", "%s = arith.subf %y0, %x0 : f32" + yield).plan().strategy, "loops");
  EXPECT_EQ(
      reduction("1.0 : f32", "%t = arith.mulf %y0, %x0 : f32\n%s = arith.addf %y0, %t : f32" + yield).plan().strategy,
      "loops");
  EXPECT_EQ(reduction("0.0 : f32", "%s = arith.addf %y0, %x0 : f32" + yield, "other axis").plan().strategy, "loops")
      << "neighbours in memory are of other rows";
}

TEST(CudaRows, AProduct) {
  // Each row of both inputs is read repeatedly. The initial value differs from that of the contraction strategy.
  KernelText k({{1, 20}});
  Value x = k.argument(k.type({"s0", "40"})), w = k.argument(k.type({"30", "40"}));
  Value y = k.reduce("ppr", {x, w}, k.type({"s0", "30"}), {"a, c", "b, c", "a, b"}, "1.0 : f32",
                     "%p = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %p : f32\nlinalg.yield %s : f32");
  EXPECT_EQ(DeviceKernel(k.finish({y})).plan().strategy, "loops");
}

TEST(CudaRows, WhatAnotherRowReads) {
  // The second op reads the sum of the previous row; the third may overwrite the memory in which the first reads
  // another row.
  const std::string sum = "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32",
                    add = "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32";
  KernelText k({{1, 20}});
  std::string type = k.type({"20", "40"}), kept = k.type({"20"});
  Value x = k.argument(type);
  Value total = k.reduce("pr", {x}, kept, {"a, b", "a"}, "0.0 : f32", sum);
  Value y = k.one("pp", {x, total}, type, {"a, b", "19 - a", "a, b"}, add);
  std::string text = k.finish({y});
  DeviceKernel kernel(text);
  expectRows(kernel, 2, 128);
  kernel.check({1}, randomInputs(text, {1}), 1e-5);

  KernelText other({{1, 20}});
  Value z = other.argument(type);
  Value reversed = other.reduce("pr", {z}, kept, {"19 - a, b", "a"}, "0.0 : f32", sum);
  Value w = other.one("pp", {z, reversed}, type, {"a, b", "a", "a, b"}, add);
  std::string whole = other.finish({w}), inPlace = other.finish({w}, "kiln.inplace = array<i64: 0>");
  expectRows(DeviceKernel(whole));
  DeviceKernel apart(inPlace);
  expectRows(apart, 2, 128);
  apart.check({1}, randomInputs(inPlace, {1}), 1e-5);
}

} // namespace
} // namespace kiln::testing
