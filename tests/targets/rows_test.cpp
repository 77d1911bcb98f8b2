// SPDX-License-Identifier: Apache-2.0
//
// Row reductions against loops in f64: norms with residuals and two results, softmaxes along any axis and of dynamic
// width, means, maxima and argmax with ties.
#include "Harness.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const std::string sum = "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32";
const std::string largest = "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32";
std::string str(int64_t n) { return std::to_string(n); }

/// Returns x + y, and its layer norm; the sum may overwrite x.
std::string residualNorm(int width) {
  KernelText k({{1, 300}});
  std::string wide = k.type({"s0", str(width)}), row = k.type({"s0"}), column = k.type({str(width)});
  Value x = k.argument(wide), y = k.argument(wide), w = k.argument(column), b = k.argument(column);
  std::string n = "%n = arith.constant " + str(width) + ".0 : f32\n";
  Value s =
      k.one("pp", {x, y}, wide, {"a, b", "a, b", "a, b"}, "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32");
  Value total = k.reduce("pr", {s}, row, {"a, b", "a"}, "0.0 : f32", sum);
  Value mean = k.one("p", {total}, row, {"a", "a"}, n + "%m = arith.divf %x0, %n : f32\nlinalg.yield %m : f32");
  Value squares =
      k.reduce("pr", {s, mean}, row, {"a, b", "a", "a"}, "0.0 : f32",
               "%d = arith.subf %x0, %x1 : f32\n%q = arith.mulf %d, %d : f32\n%s = arith.addf %y0, %q : f32\n"
               "linalg.yield %s : f32");
  Value inverse =
      k.one("p", {squares}, row, {"a", "a"},
            n + "%e = arith.constant 1.0e-5 : f32\n%o = arith.constant 1.0 : f32\n%v = arith.divf %x0, %n : f32\n"
                "%p = arith.addf %v, %e : f32\n%r = math.sqrt %p : f32\n%i = arith.divf %o, %r : f32\n"
                "linalg.yield %i : f32");
  Value norm = k.one("pp", {s, mean, inverse, w, b}, wide, {"a, b", "a", "a", "b", "b", "a, b"},
                     "%d = arith.subf %x0, %x1 : f32\n%i = arith.mulf %d, %x2 : f32\n%w = arith.mulf %i, %x3 : f32\n"
                     "%z = arith.addf %w, %x4 : f32\nlinalg.yield %z : f32");
  return k.finish({s, norm}, "kiln.inplace = array<i64: 0>");
}

class Rows : public ::testing::TestWithParam<std::string> {};

TEST_P(Rows, ResidualLayerNorm) {
  for (int64_t width : {1, 7, 15, 16, 17, 128, 768, 1023}) {
    Kernel kernel(residualNorm(width), GetParam());
    EXPECT_EQ(kernel.object().strategy, "row_reduction");
    for (int64_t m : {1, 2, 21, 22, 128, 300}) {
      SCOPED_TRACE("width " + str(width) + " rows " + str(m));
      Tensor x = randomTensor({m, width}), y = randomTensor({m, width}), w = randomTensor({width}),
             b = randomTensor({width});
      Tensor s = x, norm = x;
      for (int64_t i = 0; i < m; ++i) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < width; ++j)
          mean += (s.at({i, j}) = float(x.at({i, j}) + y.at({i, j}))) / width;
        for (int64_t j = 0; j < width; ++j)
          variance += std::pow(s.at({i, j}) - mean, 2) / width;
        for (int64_t j = 0; j < width; ++j)
          norm.at({i, j}) = (s.at({i, j}) - mean) / std::sqrt(variance + 1e-5) * w.at({j}) + b.at({j});
      }
      for (int aliased : {-1, 0}) {
        auto results = kernel.run({m}, {x, y, w, b}, aliased);
        expectClose(results[0], s);
        expectClose(results[1], norm, width == 1 ? 1e-3 : 1e-5);
      }
    }
  }
}

/// Returns a softmax of a tensor of rank 3 along an axis; dimensions are text.
std::string softmax(const std::vector<std::string> &extents, int axis, int bound) {
  KernelText k({{1, bound}});
  std::vector<std::string> kept = extents;
  kept.erase(kept.begin() + axis);
  std::string wide = k.type(extents), row = k.type(kept), loops = "ppp", at;
  loops[axis] = 'r';
  for (int i = 0; i < 3; ++i)
    if (i != axis)
      at += (at.empty() ? "" : ", ") + std::string(1, char('a' + i));
  Value x = k.argument(wide);
  Value max = k.reduce(loops, {x}, row, {"a, b, c", at}, "0xff800000 : f32", largest);
  Value e = k.one("ppp", {x, max}, wide, {"a, b, c", at, "a, b, c"},
                  "%d = arith.subf %x0, %x1 : f32\n%e = math.exp %d : f32\nlinalg.yield %e : f32");
  Value total = k.reduce(loops, {e}, row, {"a, b, c", at}, "0.0 : f32", sum);
  Value inverse = k.one("pp", {total}, row, {"a, b", "a, b"},
                        "%o = arith.constant 1.0 : f32\n%d = arith.divf %o, %x0 : f32\nlinalg.yield %d : f32");
  Value y = k.one("ppp", {e, inverse}, wide, {"a, b, c", at, "a, b, c"},
                  "%d = arith.mulf %x0, %x1 : f32\nlinalg.yield %d : f32");
  return k.finish({y}, "kiln.inplace = array<i64: 0>");
}

void checkSoftmax(Kernel &kernel, int64_t symbol, const std::vector<int64_t> &shape, int axis) {
  SCOPED_TRACE("shape " + str(shape[0]) + " x " + str(shape[1]) + " x " + str(shape[2]) + " axis " + str(axis));
  Tensor x = randomTensor(shape, 4), expected = x;
  for (int64_t i = 0; i < shape[axis == 0 ? 1 : 0]; ++i)
    for (int64_t j = 0; j < shape[axis == 2 ? 1 : 2]; ++j) {
      auto at = [&](Tensor &t, int64_t r) -> double & {
        return axis == 0 ? t.at({r, i, j}) : axis == 1 ? t.at({i, r, j}) : t.at({i, j, r});
      };
      double max = -INFINITY, total = 0;
      for (int64_t r = 0; r < shape[axis]; ++r)
        max = std::max(max, at(x, r));
      for (int64_t r = 0; r < shape[axis]; ++r)
        total += at(expected, r) = std::exp(at(x, r) - max);
      for (int64_t r = 0; r < shape[axis]; ++r)
        at(expected, r) /= total;
    }
  expectClose(kernel.run({symbol}, {x})[0], expected);
  expectClose(kernel.run({symbol}, {x}, /*aliased=*/0)[0], expected);
}

TEST_P(Rows, SoftmaxOfFixedWidth) {
  for (int64_t width : {1, 7, 128, 768, 1023}) {
    Kernel kernel(softmax({"2", "s0", str(width)}, 2, 50), GetParam());
    EXPECT_EQ(kernel.object().strategy, "row_reduction");
    for (int64_t m : {1, 9, 50})
      checkSoftmax(kernel, m, {2, m, width}, 2);
  }
}

TEST_P(Rows, SoftmaxOfRunTimeWidth) {
  Kernel kernel(softmax({"2", "5", "s0"}, 2, 500), GetParam());
  for (int64_t m : {1, 3, 15, 16, 17, 100, 500})
    checkSoftmax(kernel, m, {2, 5, m}, 2);
}

TEST_P(Rows, SoftmaxAlongOuterAxes) {
  for (int axis : {0, 1}) {
    std::vector<std::string> extents{"3", "4", "37"};
    extents[axis] = "s0";
    Kernel kernel(softmax(extents, axis, 70), GetParam());
    EXPECT_EQ(kernel.object().strategy, "row_reduction");
    for (int64_t m : {1, 8, 70}) {
      std::vector<int64_t> shape{3, 4, 37};
      shape[axis] = m;
      checkSoftmax(kernel, m, shape, axis);
    }
  }
}

TEST_P(Rows, SumsAndMaxima) {
  for (bool isInnermost : {true, false})
    for (bool isMax : {true, false}) {
      KernelText k({{1, 300}});
      std::string row = k.type({isInnermost ? "s0" : "37"});
      Value x = k.argument(k.type({"s0", "37"}));
      Value y = k.reduce(isInnermost ? "pr" : "rp", {x}, row, {"a, b", isInnermost ? "a" : "b"},
                         isMax ? "0xff800000 : f32" : "0.0 : f32", isMax ? largest : sum);
      Kernel kernel(k.finish({y}), GetParam());
      for (int64_t m : {1, 31, 300}) {
        Tensor input = randomTensor({m, 37}), expected = Tensor::zeros({isInnermost ? m : 37});
        for (double &value : expected.values)
          value = isMax ? -INFINITY : 0;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < 37; ++j) {
            double &value = expected.values[isInnermost ? i : j];
            value = isMax ? std::max(value, input.at({i, j})) : value + input.at({i, j});
          }
        expectClose(kernel.run({m}, {input})[0], expected, 1e-5, false, 1);
      }
    }
}

// Sums over so many rows that workers split them, for each column, for groups of columns, and for all columns.
TEST_P(Rows, SumsThatWorkersShare) {
  for (auto [width, group] : {std::pair(5, 1), std::pair(12, 4), std::pair(37, 37)}) {
    SCOPED_TRACE("groups of " + str(group) + " of " + str(width));
    KernelText k({{1, 5000 * 16}});
    const int groups = width / group;
    Value x = k.argument(k.type({"s0", str(width)}));
    Value columns = k.reduce("rp", {x}, k.type({str(width)}), {"a, b", "b"}, "0.0 : f32", sum);
    Value y = k.reduce("pr", {columns, k.empty(k.type({str(group)}))}, k.type({str(groups)}),
                       {"a * " + str(group) + " + b", "b", "a"}, "0.0 : f32", sum);
    Kernel kernel(k.finish({group > 1 ? y : columns}), GetParam());
    for (int64_t m : {1, 31, 4999}) {
      Tensor input = randomTensor({m, width}), expected = Tensor::zeros({group > 1 ? groups : width});
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < width; ++j)
          expected.values[group > 1 ? j / group : j] += input.at({i, j});
      const Tensor alone = kernel.run({m}, {input})[0];
      expectClose(alone, expected, 1e-5, false, std::sqrt(static_cast<double>(m * group)));
      EXPECT_EQ(kernel.run({m}, {input}, -1, 3)[0].values, alone.values);
    }
  }
}

TEST_P(Rows, ArgmaxTakesTheFirst) {
  KernelText k({{1, 64}});
  std::string values = k.type({"s0"}), indices = k.type({"s0"}, "i32");
  Value x = k.argument(k.type({"s0", "101"}));
  Value low = k.fill(k.constant("0xff800000 : f32"), values), none = k.fill(k.constant("2147483647 : i32"), indices);
  auto best = k.generic(
      "pr", {x}, {values, indices}, {"a, b", "a", "a"},
      "%j = linalg.index 1 : index\n%i = arith.index_cast %j : index to i32\n"
      "%gt = arith.cmpf ogt, %x0, %y0 : f32\n%eq = arith.cmpf oeq, %x0, %y0 : f32\n"
      "%lt = arith.cmpi slt, %i, %y1 : i32\n%tie = arith.andi %eq, %lt : i1\n%b = arith.ori %gt, %tie : i1\n"
      "%v = arith.select %b, %x0, %y0 : f32\n%n = arith.select %b, %i, %y1 : i32\nlinalg.yield %v, %n : f32, i32",
      {low, none});
  Kernel kernel(k.finish({best[1]}), GetParam());
  for (int64_t m : {1, 13, 64}) {
    Tensor input = randomIntegers({m, 101}, 0, 20), expected = Tensor::zeros({m});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 100; j >= 0; --j)
        if (input.at({i, j}) >= input.at({i, int64_t(expected.at({i}))}))
          expected.at({i}) = j;
    expectClose(kernel.run({m}, {input})[0], expected, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Rows, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
