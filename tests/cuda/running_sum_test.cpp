// SPDX-License-Identifier: Apache-2.0
//
// Cumulative sums along each axis: the launches, all configurations, the order of additions, types, and the kernels
// that other strategies compute.
#include "DeviceKernel.h"
#include "HalfFloatKernel.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

std::string type(const std::vector<std::string> &extents, const std::string &element = "f32") {
  return KernelText({{1, 40}}).type(extents, element);
}

/// Returns a kernel of cumsum along the axis, between other ops if `isFused`.
std::string cumsum(const std::string &x, int axis, const std::string &attributes = "", bool isFused = false,
                   int bound = 40) {
  const std::string sum = "kiln.cumsum %0 axis = " + std::to_string(axis) + attributes + " : " + x;
  std::string body = "  %0 = kiln.add %x, %x : (" + x + ", " + x + ") -> " + x + "\n  %1 = " + sum;
  body += isFused ? "\n  %2 = kiln.mul %1, %y : (" + x + ", " + x + ") -> " + x + "\n  return %2" : "\n  return %1";
  return "func.func private @f(%s0: index, %x: " + x + (isFused ? ", %y: " + x : "") + ") -> " + x +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, " + std::to_string(bound) + ">} {\n" + body + " : " +
         x + "\n}\n";
}

/// An axis of one element has no sum that is recognised; a thread each is as good.
void expectOneLaunch(const DeviceKernel &kernel, int length = 2) {
  EXPECT_EQ(kernel.plan().strategy, length > 1 ? "running_sum" : "loops");
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  EXPECT_EQ(kernel.plan().scratchBytes, 0);
}

TEST(CudaRunningSum, AlongTheInnermostAxis) {
  for (int length : {1, 2, 15, 16, 31, 33, 127, 129, 1000, 5001}) {
    SCOPED_TRACE(length);
    for (const char *attributes : {"", " reverse"}) {
      const std::string text = cumsum(type({"s0", std::to_string(length)}), 1, attributes, length % 2 == 0);
      DeviceKernel kernel(text);
      expectOneLaunch(kernel, length);
      for (int64_t m : {1, 3})
        kernel.check({m}, randomInputs(text, {m}));
    }
  }
}

TEST(CudaRunningSum, AlongAnotherAxis) {
  for (int length : {1, 7, 31, 65, 301})
    for (int columns : {1, 3, 33}) {
      SCOPED_TRACE(std::to_string(length) + " x " + std::to_string(columns));
      for (const char *attributes : {"", " reverse"}) {
        const std::string x = type({"s0", std::to_string(length), std::to_string(columns)});
        const std::string text = cumsum(x, 1, attributes, columns > 1);
        DeviceKernel kernel(text);
        expectOneLaunch(kernel, length);
        for (int64_t m : {1, 3})
          kernel.check({m}, randomInputs(text, {m}));
      }
    }
}

TEST(CudaRunningSum, AlongARunTimeAxis) {
  const std::string text = cumsum(type({"s0", "5", "3"}), 0, "", true);
  DeviceKernel kernel(text);
  expectOneLaunch(kernel);
  for (int64_t m : {1, 2, 33, 40})
    kernel.check({m}, randomInputs(text, {m}));
  const std::string row = cumsum(type({"s0"}), 0, " reverse", true);
  DeviceKernel alone(row);
  expectOneLaunch(alone);
  for (int64_t m : {1, 31, 40})
    alone.check({m}, randomInputs(row, {m}));
}

TEST(CudaRunningSum, EveryConfigOfTheSearchSpace) {
  const std::string along = cumsum(type({"s0", "700"}), 1, "", true);
  for (int64_t threads : {32, 64, 128, 256, 512, 1024})
    for (int64_t lines : {1, 2, 4, 8}) {
      if (threads > 32 && lines > 1)
        continue;
      ScheduleConfig config{{"line_threads", threads}, {"lines_per_block", lines}};
      SCOPED_TRACE(toString(config));
      DeviceKernel kernel(along, &config);
      EXPECT_EQ(kernel.plan().functions.front().threads, threads * lines);
      kernel.check({5}, randomInputs(along, {5}));
    }
  const std::string across = cumsum(type({"s0", "37", "11"}), 1, " reverse", true);
  for (int64_t threads : {1, 2, 4, 8, 16, 32})
    for (int64_t lines : {1, 4, 16, 32, 256}) {
      if (threads * lines > 1024)
        continue;
      ScheduleConfig config{{"line_threads", threads}, {"lines_per_block", lines}};
      SCOPED_TRACE(toString(config));
      DeviceKernel(across, &config).check({5}, randomInputs(across, {5}));
    }
  ScheduleConfig wrong{{"line_threads", 64}, {"lines_per_block", 2}};
  EXPECT_EQ(refusal(along, &wrong), "running_sum schedule: invalid combination; expected lines_per_block = 1 or "
                                    "line_threads = 32, got line_threads=64 lines_per_block=2");
}

TEST(CudaRunningSum, Integers) {
  for (int axis : {0, 1}) {
    const std::string text = cumsum(type({"s0", "45"}, "i32"), axis, "", true);
    DeviceKernel kernel(text);
    expectOneLaunch(kernel);
    kernel.check({40}, randomInputs(text, {40}, -2000000000, 2000000000)); // sums wrap
  }
}

TEST(CudaRunningSum, HalfFloatsAreRoundedOnce) {
  for (const HalfFloat &half : halfFloats) {
    const std::string x = type({"s0", "600"}, half.name);
    const std::string text = cumsum(x, 1);
    DeviceKernel kernel(text);
    expectOneLaunch(kernel);
    std::vector<Tensor> inputs = randomInputs(text, {3});
    for (double &value : inputs[0].values)
      value = half.round(value);
    kernel.check({3}, inputs);
    const Tensor got = kernel.run({3}, inputs)[0];
    double sum = 0, magnitude = 0;
    for (int i = 0; i < 600; ++i) {
      sum += 2 * inputs[0].values[i];
      magnitude += std::abs(2 * inputs[0].values[i]);
      ASSERT_NEAR(got.values[i], sum, half.unit * std::abs(sum) + 1e-6 * magnitude + 1e-6) << i;
    }
  }
}

TEST(CudaRunningSum, SeveralSumsOfOneAxis) {
  // cumsum(x) - cumsum(x * y), in one pass.
  const std::string x = type({"s0", "77", "5"}), types = " : (" + x + ", " + x + ") -> " + x + "\n";
  const std::string text = "func.func private @f(%s0: index, %x: " + x + ", %y: " + x + ") -> " + x +
                           " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 40>} {\n  %0 = kiln.mul %x, %y" +
                           types + "  %1 = kiln.cumsum %x axis = 1 : " + x + "\n  %2 = kiln.cumsum %0 axis = 1 : " + x +
                           "\n  %3 = kiln.sub %1, %2" + types + "  return %3 : " + x + "\n}\n";
  DeviceKernel kernel(text);
  expectOneLaunch(kernel);
  kernel.check({7}, randomInputs(text, {7}));
}

TEST(CudaRunningSum, SumsOfDifferentAxes) {
  // Not in one pass, but right.
  const std::string x = type({"s0", "7", "5"}), types = " : (" + x + ", " + x + ") -> " + x + "\n";
  const std::string text = "func.func private @f(%s0: index, %x: " + x + ") -> " + x +
                           " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 40>} {\n" +
                           "  %1 = kiln.cumsum %x axis = 1 : " + x + "\n  %2 = kiln.cumsum %x axis = 2 : " + x +
                           "\n  %3 = kiln.sub %1, %2" + types + "  return %3 : " + x + "\n}\n";
  DeviceKernel(text).check({7}, randomInputs(text, {7}));
}

TEST(CudaRunningSum, AnEpilogueThatTransposes) {
  // The lines of the sum are the columns of what is stored.
  KernelText k({{1, 40}});
  Value x = k.argument(k.type({"s0", "33"}));
  Value sums = k.reduce("ppr", {x}, x.type, {"a, c", "a, b"}, "0.0 : f32",
                        "%i = linalg.index 1 : index\n%j = linalg.index 2 : index\n%z = arith.constant 0.0 : f32\n"
                        "%c = arith.cmpi sle, %j, %i : index\n%v = arith.select %c, %x0, %z : f32\n"
                        "%s = arith.addf %y0, %v : f32\nlinalg.yield %s : f32");
  const std::string text = k.finish({k.one("pp", {sums}, k.type({"33", "s0"}), {"b, a", "a, b"},
                                           "%m = arith.mulf %x0, %x0 : f32\nlinalg.yield %m : f32")});
  DeviceKernel kernel(text);
  expectOneLaunch(kernel);
  for (int64_t m : {1, 37})
    kernel.check({m}, randomInputs(text, {m}), 1e-5);
}

TEST(CudaRunningSum, InfinitiesAndNan) {
  const std::string text = cumsum(type({"s0", "300"}), 1);
  DeviceKernel kernel(text);
  std::vector<Tensor> inputs = {Tensor::zeros({3, 300})};
  for (double &value : inputs[0].values)
    value = 0.5;
  inputs[0].values[150] = std::nan("");
  inputs[0].values[300 + 299] = INFINITY;
  inputs[0].values[600] = -0.0;
  const Tensor got = kernel.run({3}, inputs)[0];
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(std::isnan(got.values[i]), i >= 150) << i;
    EXPECT_EQ(got.values[300 + i], i < 299 ? i + 1 : INFINITY) << i;
    EXPECT_EQ(got.values[600 + i], i) << i;
  }
  EXPECT_FALSE(std::signbit(got.values[600]));
}

//===- The order of additions --------------------------------------------===//

/// Adds a row as warps do: lanes of 32 elements in pairs, pairs of pairs and so on, four such groups one after the
/// other, the totals of warps to the sum before the tile.
std::vector<float> sumByWarps(const double *row, int length, int warps) {
  std::vector<float> sums(length);
  float before = 0;
  for (int tile = 0; tile < length; tile += warps * 128) {
    float own = before; // the sum before the warp's segment
    for (int first = tile; first < tile + warps * 128; first += 128) {
      float total = 0;
      for (int group = first; group < first + 128; group += 32) {
        std::vector<float> upTo(32), all(32);
        for (int lane = 0; lane < 32; ++lane)
          upTo[lane] = all[lane] = float(row[std::min(group + lane, length - 1)]);
        for (int bit = 1; bit < 32; bit *= 2) {
          const std::vector<float> last = all;
          for (int lane = 0; lane < 32; ++lane) {
            if (lane & bit)
              upTo[lane] += last[lane ^ bit];
            all[lane] += last[lane ^ bit];
          }
        }
        for (int lane = 0; lane < 32 && group + lane < length; ++lane)
          sums[group + lane] = own + (group == first ? upTo[lane] : total + upTo[lane]);
        total = group == first ? all[0] : total + all[0];
      }
      own += total;
    }
    before = own;
  }
  return sums;
}

TEST(CudaRunningSum, SumsHaveOneOrder) {
  for (int length : {31, 300, 2000})
    for (int warps : {1, 2, 8}) {
      ScheduleConfig config{{"line_threads", 32 * warps}, {"lines_per_block", 1}};
      KernelText k({{1, 40}});
      const std::string x = type({"s0", std::to_string(length)});
      const std::string text = "func.func private @f(%s0: index, %x: " + x + ") -> " + x +
                               " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 40>} {\n  %0 = kiln.cumsum %x "
                               "axis = 1 : " +
                               x + "\n  return %0 : " + x + "\n}\n";
      const std::vector<Tensor> inputs = randomInputs(text, {3});
      const Tensor got = DeviceKernel(text, &config).run({3}, inputs)[0];
      for (int row = 0; row < 3; ++row) {
        const std::vector<float> sums = sumByWarps(&inputs[0].values[size_t(row) * length], length, warps);
        for (int i = 0; i < length; ++i)
          ASSERT_EQ(float(got.values[row * length + i]), sums[i]) << i << " of " << length << ", " << warps << " warps";
      }
    }
}

TEST(CudaRunningSum, AThreadThatHasALineAddsInOrder) {
  ScheduleConfig config{{"line_threads", 1}, {"lines_per_block", 32}};
  const std::string x = type({"s0", "201", "5"});
  const std::string text = "func.func private @f(%s0: index, %x: " + x + ") -> " + x +
                           " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 40>} {\n  %0 = kiln.cumsum %x axis = "
                           "1 : " +
                           x + "\n  return %0 : " + x + "\n}\n";
  const std::vector<Tensor> inputs = randomInputs(text, {3});
  const Tensor got = DeviceKernel(text, &config).run({3}, inputs)[0];
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 5; ++column) {
      float sum = 0;
      for (int i = 0; i < 201; ++i) {
        const size_t at = size_t(row * 201 + i) * 5 + column;
        ASSERT_EQ(float(got.values[at]), sum += float(inputs[0].values[at])) << i;
      }
    }
}

} // namespace
} // namespace kiln::testing
