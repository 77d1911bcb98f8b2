// SPDX-License-Identifier: Apache-2.0
//
// Reductions whose columns are contiguous: means of the channels of images and of groups of them in one or two
// launches, maxima, the order of additions, and the kernels that other strategies compute.
#include "DeviceKernel.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const std::string addUp = "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32";

std::string number(int64_t value) { return std::to_string(value); }
std::string type(const std::vector<std::string> &extents, const std::string &element = "f32") {
  return KernelText({{1, 4}}).type(extents, element);
}
std::string kernelOf(const std::string &arguments, const std::string &result, const std::string &body,
                     const std::string &attributes = "") {
  return "func.func private @f(%s0: index, " + arguments + ") -> " + result +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 4>" + attributes + "} {\n" + body + " : " + result +
         "\n}\n";
}
std::string mean(const std::string &to, const std::string &from, int axis, const std::string &x, const std::string &y) {
  return "%" + to + " = kiln.mean %" + from + " axis = " + number(axis) + " : (" + x + ") -> " + y + "\n";
}

/// Returns the kernel of group norm's variances: the mean of (x - m)^2 over `pixels` and a group's `width` channels.
/// Channels are separate axes of groups and of the group's channels if `isSplit`; else the result is repeated for each
/// channel.
std::string variances(int pixels, int groups, int width, bool isSplit) {
  const std::string p = number(pixels), g = number(groups), w = number(width), c = number(groups * width);
  const std::string split = type({"s0", g, w}), group = type({"s0", g}), column = type({"s0", g, "1"});
  const std::string x = isSplit ? type({"s0", p, g, w}) : type({"s0", p, c});
  const std::string m = isSplit ? type({"s0", "1", g, "1"}) : type({"s0", "1", c});
  const std::string channels = isSplit ? split : type({"s0", c});
  std::string body = "%0 = kiln.sub %x, %m : (" + x + ", " + m + ") -> " + x + "\n%1 = kiln.mul %0, %0 : (" + x + ", " +
                     x + ") -> " + x + "\n" + mean("2", "1", 1, x, channels);
  if (isSplit)
    return kernelOf("%x: " + x + ", %m: " + m, group,
                    body + mean("3", "2", 2, split, group) + "%4 = kiln.sqrt %3 : " + group + "\nreturn %4");
  body += "%3 = kiln.reshape %2 : " + channels + " -> " + split + "\n" + mean("4", "3", 2, split, group) +
          "%5 = kiln.sqrt %4 : " + group + "\n%6 = kiln.reshape %5 : " + group + " -> " + column +
          "\n%7 = kiln.expand %6 : " + column + " -> " + split + "\nreturn %7";
  return kernelOf("%x: " + x + ", %m: " + m, split, body);
}

void expectColumns(const DeviceKernel &kernel, size_t launches) {
  EXPECT_EQ(kernel.plan().strategy, "columns");
  EXPECT_EQ(kernel.plan().launches.size(), launches);
  EXPECT_EQ(kernel.plan().scratchBytes > 0, launches > 1) << "for parts only";
}

void checkBatches(DeviceKernel &kernel, const std::string &text) {
  for (int64_t m : {1, 3})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaColumns, GroupsOfAnyNumberOfChannels) {
  for (auto [groups, width] : {std::pair(1, 3), std::pair(3, 1), std::pair(2, 2), std::pair(7, 3), std::pair(4, 7),
                               std::pair(3, 8), std::pair(5, 33), std::pair(1, 130), std::pair(43, 2)})
    for (bool isSplit : {true, false}) {
      SCOPED_TRACE(number(groups) + " x " + number(width) + (isSplit ? "" : " repeated"));
      const std::string text = variances(77, groups, width, isSplit);
      DeviceKernel kernel(text);
      expectColumns(kernel, 1);
      checkBatches(kernel, text);
    }
}

TEST(CudaColumns, SmallImagesOfNarrowGroups) {
  for (auto [pixels, width, launches] : {std::tuple(3, 8, 2U), std::tuple(4, 8, 1U), std::tuple(31, 128, 1U),
                                         std::tuple(31, 129, 2U), std::tuple(40, 2049, 2U)}) {
    SCOPED_TRACE(number(pixels) + " x " + number(width));
    const std::string text = variances(pixels, 2, width, true);
    DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().launches.size(), launches);
    checkBatches(kernel, text);
  }
}

TEST(CudaColumns, LargeImagesAreSharedByBlocks) {
  for (bool isSplit : {true, false}) {
    DeviceKernel kernel(variances(256 * 256, 32, 2, isSplit));
    expectColumns(kernel, 2);
    EXPECT_EQ(kernel.plan().schedule.at("columns_parts"), 256);
  }
  const std::string text = variances(2345, 3, 8, true);
  DeviceKernel kernel(text);
  expectColumns(kernel, 2);
  checkBatches(kernel, text);
}

TEST(CudaColumns, EveryConfigOfTheSearchSpace) {
  for (bool isSplit : {true, false}) {
    const std::string text = variances(273, 9, 5, isSplit);
    for (int64_t threads : {128, 256, 512, 1024})
      for (int64_t parts : {1, 2, 4, 8, 16}) {
        ScheduleConfig config{{"columns_threads", threads}, {"columns_parts", parts}};
        SCOPED_TRACE(toString(config));
        DeviceKernel kernel(text, &config);
        expectColumns(kernel, parts == 1 ? 1 : 2);
        EXPECT_EQ(kernel.plan().functions.front().threads, threads);
        kernel.check({1}, randomInputs(text, {1}));
      }
  }
}

TEST(CudaColumns, MeansOfChannels) {
  for (int pixels : {32, 33, 1000, 2100})
    for (int channels : {1, 5, 33, 100}) {
      SCOPED_TRACE(number(pixels) + " x " + number(channels));
      const std::string x = type({"s0", number(pixels), number(channels)}), y = type({"s0", number(channels)});
      const std::string text = kernelOf("%x: " + x, y, mean("0", "x", 1, x, y) + "return %0");
      DeviceKernel kernel(text);
      EXPECT_EQ(kernel.plan().strategy, channels == 1 && pixels < 128 ? "loops" : "columns");
      checkBatches(kernel, text);
    }
}

TEST(CudaColumns, OfRunTimeExtents) {
  KernelText k({{0, 900}, {1, 90}});
  const std::string y = k.type({"3", "s1"});
  Value x = k.argument(k.type({"3", "s0", "s1"}));
  Value sum = k.reduce("prp", {x}, y, {"a, b, c", "a, c"}, "2.5 : f32", addUp);
  Value z = k.one("pp", {sum}, y, {"a, b", "a, b"}, "%m = arith.mulf %x0, %x0 : f32\nlinalg.yield %m : f32");
  const std::string text = k.finish({z});
  for (int64_t parts : {1, 8}) {
    ScheduleConfig config{{"columns_threads", 128}, {"columns_parts", parts}};
    DeviceKernel kernel(text, &config);
    expectColumns(kernel, parts == 1 ? 1 : 2);
    for (std::vector<int64_t> extents : {std::vector<int64_t>{900, 1}, {1, 90}, {37, 33}})
      kernel.check(extents, randomInputs(text, extents), 1e-5);
    EXPECT_EQ(kernel.run({0, 4}, {Tensor::zeros({3, 0, 4})})[0].values, std::vector<double>(12, 6.25));
  }
}

TEST(CudaColumns, SeveralAxesTogether) {
  KernelText k({{1, 4}});
  Value x = k.argument(k.type({"s0", "9", "7", "5"}));
  Value sum = k.reduce("prrp", {x}, k.type({"s0", "5"}), {"a, b, c, d", "a, d"}, "0.0 : f32", addUp);
  const std::string text = k.finish({sum});
  DeviceKernel kernel(text);
  expectColumns(kernel, 1);
  kernel.check({3}, randomInputs(text, {3}), 1e-5);
}

TEST(CudaColumns, MaximaAndTheirPlaces) {
  for (std::string op : {"max", "argmax"})
    for (int64_t parts : {1, 4}) {
      SCOPED_TRACE(op + " in parts: " + number(parts));
      const std::string x = type({"s0", "130", "37"}), y = type({"s0", "37"}, op == "max" ? "f32" : "i32");
      const std::string text =
          kernelOf("%x: " + x, y, "%0 = kiln." + op + " %x axis = 1 : (" + x + ") -> " + y + "\nreturn %0");
      ScheduleConfig config{{"columns_threads", 256}, {"columns_parts", parts}};
      DeviceKernel kernel(text, &config);
      expectColumns(kernel, parts == 1 ? 1 : 2);
      checkBatches(kernel, text);
    }
}

TEST(CudaColumns, Integers) {
  const std::string x = type({"s0", "65", "6"}, "i32"), y = type({"s0", "6"}, "i32");
  const std::string text = kernelOf("%x: " + x, y, "%0 = kiln.sum %x axis = 1 : (" + x + ") -> " + y + "\nreturn %0");
  DeviceKernel kernel(text);
  expectColumns(kernel, 1);
  kernel.check({3}, randomInputs(text, {3}, -2000000000, 2000000000)); // sums wrap
}

TEST(CudaColumns, SoftmaxOfTheSums) {
  // The row after the sums has several stages, each of which reads them.
  const std::string x = type({"s0", "90", "21"}), y = type({"s0", "21"});
  const std::string text = kernelOf("%x: " + x, y,
                                    "%0 = kiln.sum %x axis = 1 : (" + x + ") -> " + y +
                                        "\n%1 = kiln.softmax %0 axis = 1 : " + y + "\nreturn %1");
  for (int64_t parts : {1, 2, 4}) {
    ScheduleConfig config{{"columns_threads", 128}, {"columns_parts", parts}};
    DeviceKernel kernel(text, &config);
    expectColumns(kernel, parts == 1 ? 1 : 2);
    checkBatches(kernel, text);
  }
}

//===- Memory that results share -----------------------------------------===//

/// Returns the kernel of totals over columns of sums of x - m, which may overwrite m, and adds m.
std::string inPlace() {
  KernelText k;
  Value x = k.argument("tensor<4x40x6xf32>"), m = k.argument("tensor<4xf32>");
  Value less = k.one("ppp", {x, m}, x.type, {"a, b, c", "3 - a", "a, b, c"},
                     "%d = arith.subf %x0, %x1 : f32\nlinalg.yield %d : f32");
  Value sums = k.reduce("prp", {less}, "tensor<4x6xf32>", {"a, b, c", "a, c"}, "0.0 : f32", addUp);
  Value totals = k.reduce("pr", {sums}, m.type, {"a, b", "a"}, "0.0 : f32", addUp);
  Value y = k.one("p", {totals}, m.type, {"a", "a"}, "%d = arith.addf %x0, %x0 : f32\nlinalg.yield %d : f32");
  return k.finish({y}, "kiln.inplace = array<i64: 1>");
}

TEST(CudaColumns, ResultsThatOtherBlocksReadAreASecondLaunch) {
  const std::string text = inPlace();
  DeviceKernel kernel(text);
  EXPECT_EQ(kernel.plan().strategy, "columns");
  EXPECT_EQ(kernel.plan().launches.size(), 2U);
  kernel.check({}, randomInputs(text, {}), 1e-5);
}

TEST(CudaColumns, SumsThatAreResultsAreStored) {
  const std::string x = type({"s0", "50", "12"}), y = type({"s0", "12"}), z = type({"s0"});
  const std::string text = "func.func private @f(%s0: index, %x: " + x + ") -> (" + y + ", " + z +
                           ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, 4>} {\n" + mean("0", "x", 1, x, y) +
                           mean("1", "0", 1, y, z) + "return %0, %1 : " + y + ", " + z + "\n}\n";
  DeviceKernel kernel(text);
  EXPECT_EQ(kernel.plan().strategy, "columns");
  EXPECT_EQ(kernel.plan().launches.size(), 2U);
  checkBatches(kernel, text);
}

//===- The order of additions --------------------------------------------===//

/// Adds the columns of an image [pixels, columns] as blocks of threads do.
std::vector<float> sumByThreads(const std::vector<double> &x, int columns, int threads, int parts) {
  const int pixels = int(x.size()) / columns, lines = threads / columns, ofPart = (pixels + parts - 1) / parts;
  std::vector<float> result;
  for (int column = 0; column < columns; ++column) {
    float total = -0.0F;
    for (int part = 0; part < parts; ++part) {
      std::vector<float> sums(lines, -0.0F);
      sums[0] = part == 0 ? 0.0F : -0.0F;
      for (int line = 0; line < lines; ++line)
        for (int pixel = part * ofPart + line; pixel < std::min((part + 1) * ofPart, pixels); pixel += lines)
          sums[line] += float(x[size_t(pixel) * columns + column]);
      int half = 1;
      while (half < lines)
        half *= 2;
      for (half /= 2; half > 0; half /= 2)
        for (int line = 0; line < half && line + half < lines; ++line)
          sums[line] += sums[line + half];
      total = parts == 1 ? sums[0] : total + sums[0];
    }
    result.push_back(total);
  }
  return result;
}

TEST(CudaColumns, SumsHaveOneOrder) {
  KernelText k;
  Value x = k.argument("tensor<777x7xf32>");
  const std::string text = k.finish({k.reduce("rp", {x}, "tensor<7xf32>", {"a, b", "b"}, "0.0 : f32", addUp)});
  for (int threads : {128, 512})
    for (int parts : {1, 2, 16, 32}) {
      ScheduleConfig config{{"columns_threads", threads}, {"columns_parts", parts}};
      const std::vector<Tensor> inputs = randomInputs(text, {});
      const Tensor got = DeviceKernel(text, &config).run({}, inputs)[0];
      const std::vector<float> sums = sumByThreads(inputs[0].values, 7, threads, parts);
      for (int column = 0; column < 7; ++column)
        EXPECT_EQ(float(got.values[column]), sums[column]) << threads << " threads, " << parts << " parts";
    }
}

//===- Unsupported kernels -----------------------------------------------===//

/// Returns the strategy of the reduction of `length` x `columns` elements.
std::string strategyOf(int length, int columns, const std::string &region = addUp) {
  KernelText k;
  Value x = k.argument("tensor<" + number(length) + "x" + number(columns) + "xf32>");
  return DeviceKernel(
             k.finish({k.reduce("rp", {x}, "tensor<" + number(columns) + "xf32>", {"a, b", "b"}, "0.0 : f32", region)}))
      .plan()
      .strategy;
}

TEST(CudaColumns, OnlyLongReductionsWithFewResults) {
  EXPECT_EQ(strategyOf(31, 40), "loops");
  EXPECT_EQ(strategyOf(32, 40), "columns");
  EXPECT_EQ(strategyOf(32, 65536), "columns");
  EXPECT_EQ(strategyOf(32, 65537), "loops");
}

TEST(CudaColumns, OrderThatMatters) {
  const std::string yield = "\nlinalg.yield %s : f32";
  EXPECT_EQ(strategyOf(64, 40, "%s = arith.addf %y0, %x0 {kiln.strict} : f32" + yield), "loops");
  EXPECT_EQ(strategyOf(64, 40, "%s = arith.subf %y0, %x0 : f32" + yield), "loops");
}

} // namespace
} // namespace kiln::testing
