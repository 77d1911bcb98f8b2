// SPDX-License-Identifier: Apache-2.0
//
// GEMMs of int8 activations with int8 weights in the interleaved (VNNI) layout: every bit agrees with plain loops over
// integers and f32, on every instruction set. And the quantisation of f32 activations to int8.
#include "LinearKernel.h"
#include <cstdlib>
#include <limits>

namespace kiln::testing {
namespace {

/// Returns integers, with 127 or -127 in each output row, times the row's scale: the storage format represents them
/// exactly.
Tensor weights(int64_t n, int64_t k) {
  Tensor w = randomIntegers({n, k}, -127, 128), exponents = randomIntegers({n, 1}, -12, 3);
  for (int64_t row = 0; row < n; ++row) {
    w.at({row, row % k}) = row % 2 ? 127 : -127;
    for (int64_t column = 0; column < k; ++column)
      w.at({row, column}) *= std::exp2(exponents.at({row, 0}));
  }
  return w;
}

void check(Kernel &kernel, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE("rows " + number(m) + " columns " + number(n) + " K " + number(k));
  const Tensor x = randomIntegers({m, k}, -127, 128), scales = randomTensor({m}), w = weights(n, k),
               b = randomTensor({n}, 100);
  Tensor expected = Tensor::zeros({m, n});
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0, most = 0; // exact: numbers of 15 bits times one power of two
      for (int64_t i = 0; i < k; ++i) {
        sum += x.at({row, i}) * w.at({column, i});
        most = std::max(most, std::abs(w.at({column, i})));
      }
      const auto scale = float(most / 127), whole = float(sum / scale), product = whole * scale;
      const volatile float scaled = product * float(scales.at({row}));
      expected.at({row, column}) = std::max(scaled + float(b.at({column})), 0.0f);
    }
  EXPECT_EQ(kernel.run({m}, {x, scales, w, b})[0].values, expected.values);
  EXPECT_EQ(kernel.run({m}, {x, scales, w, b}, -1, 2)[0].values, expected.values) << "two workers";
}

class Int8Rows : public ::testing::TestWithParam<std::string> {
protected:
  std::string layout(int64_t size, int64_t word) const {
    return "#kiln.tiled<0, " + number(size) + ", interleave = " + number(word) + ", storage = <i8>>";
  }
  std::string layout() const {
    const Target *target = findTarget(GetParam());
    return layout(target->weightTile(96, 64), target->hooks().interleaveBytes);
  }
};

TEST_P(Int8Rows, SkinnyGemm) {
  Kernel one(int8Kernel(113, 13, layout(), 1), GetParam()), few(int8Kernel(49, 130, layout(), 9), GetParam());
  EXPECT_EQ(one.object().strategy, "skinny_gemm");
  check(one, 1, 113, 13);
  for (int64_t m : {1, 2, 5, 9})
    check(few, m, 49, 130);
}

TEST_P(Int8Rows, ManyRows) {
  for (auto [n, k] : {std::pair(113, 639), {48, 3074}, {50, 512}}) {
    Kernel kernel(int8Kernel(n, k, layout(), 256), GetParam());
    EXPECT_EQ(kernel.object().strategy, "contraction");
    for (int64_t m : {1, 33, 200})
      check(kernel, m, n, k);
  }
}

/// The largest sums: all terms of a long K have the same sign.
TEST_P(Int8Rows, SumsHoldWhatCanCome) {
  const int64_t k = 1 << 17, n = 48;
  Kernel kernel(int8Kernel(n, k, layout(), 4), GetParam());
  Tensor x = Tensor::zeros({2, k}), w = Tensor::zeros({n, k}), ones = Tensor::zeros({2}), none = Tensor::zeros({n});
  for (int64_t i = 0; i < k; ++i) {
    x.at({0, i}) = 127;
    x.at({1, i}) = -127;
    for (int64_t column = 0; column < n; ++column)
      w.at({column, i}) = column % 2 ? -127 : 127;
  }
  ones.values.assign(2, 1);
  const Tensor y = kernel.run({2}, {x, ones, w, none})[0];
  const double most = double(float(127.0 * 127 * double(k)));
  for (int64_t column = 0; column < n; ++column)
    for (int64_t row : {0, 1})
      EXPECT_EQ(y.at({row, column}), (column + row) % 2 ? 0 : most) << row << " " << column;
}

/// Interleaved layouts of other instruction sets, as after a fallback from this one's instructions because of a
/// code-generator crash.
TEST_P(Int8Rows, InterleavesOfOtherLevels) {
  for (int64_t word : {2, 4}) {
    Kernel kernel(int8Kernel(32, 70, layout(16, word), 40), GetParam());
    for (int64_t m : {1, 40})
      check(kernel, m, 32, 70);
  }
}

TEST_P(Int8Rows, ConfigsOfTheSearchSpace) {
  for (int bound : {1, 13, 200}) {
    const std::string text = int8Kernel(113, 128, layout(), bound);
    size_t turn = 0;
    for (const ScheduleConfig &config : configsToTry(describe(text, GetParam()).space, 2, GetParam())) {
      if (!std::getenv("KILN_TEST_ALL") && turn++ % 3)
        continue;
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, GetParam(), &config);
      for (int m : {1, 13, 200})
        if (m <= bound)
          check(kernel, m, 113, 128);
    }
  }
}

TEST_P(Int8Rows, StayWithinTheirMemory) {
  for (int bound : {1, 9, 64}) {
    const MemoryCheck checked = checkMemory(int8Kernel(49, 130, layout(), bound), GetParam(), {{{1}}, {{bound}}});
    EXPECT_EQ(checked.fault, "");
    EXPECT_GT(checked.checked, 0);
  }
}

/// Quantisation of f32, with a row of zeros, one of subnormal numbers, and rows with NaN and infinity.
TEST_P(Int8Rows, AreMadeOfRowsOfFloats) {
  const int64_t m = 9, k = 133;
  auto kernelOf = [](const std::string &op, const std::string &scales, const std::string &result) {
    const std::string x = "tensor<?x133xf32, affine_map<()[s0] -> (s0, 133)>>";
    const std::string both = scales.empty() ? x : x + ", " + scales;
    return "func.func @kernel(%s0: index, %x: " + x + (scales.empty() ? "" : ", %s: " + scales) + ") -> " + result +
           " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 64>} {\n%0 = kiln." + op + " : (" + both + ") -> " +
           result + "\nreturn %0 : " + result + "\n}";
  };
  const std::string scale = "tensor<?xf32, affine_map<()[s0] -> (s0)>>";
  Kernel scales(kernelOf("row_scales %x", "", scale), GetParam());
  Kernel quantize(kernelOf("quantize_rows %x, %s", scale, "tensor<?x133xi8, affine_map<()[s0] -> (s0, 133)>>"),
                  GetParam());
  Tensor x = randomTensor({m, k});
  for (int64_t i = 0; i < k; ++i) {
    x.at({1, i}) = 0;
    x.at({2, i}) = std::ldexp(double(i % 90), -149);
    x.at({3, i}) = double(i - 66) / 2; // ties round to even
  }
  x.at({3, 0}) = 127;
  x.at({4, 7}) = std::numeric_limits<double>::quiet_NaN();
  x.at({5, 132}) = std::numeric_limits<double>::infinity();
  x.at({6, 0}) = -std::numeric_limits<double>::infinity();
  x.at({7, 3}) = -double(std::numeric_limits<float>::max());
  const Tensor s = scales.run({m}, {x})[0], q = quantize.run({m}, {x, s})[0];
  for (int64_t row = 0; row < m; ++row) {
    float most = 0;
    bool isFinite = true;
    for (int64_t i = 0; i < k; ++i) {
      isFinite &= std::isfinite(x.at({row, i}));
      most = std::max(most, std::abs(float(x.at({row, i}))));
    }
    if (!isFinite) {
      EXPECT_TRUE(std::isnan(s.at({row}))) << row;
      continue;
    }
    const float step = most / 127;
    EXPECT_EQ(s.at({row}), step) << row;
    for (int64_t i = 0; i < k; ++i) {
      const float quotient = float(x.at({row, i})) / (step == 0 ? 1 : step);
      EXPECT_EQ(q.at({row, i}), std::clamp(std::nearbyint(double(quotient)), -127.0, 127.0)) << row << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Int8Rows, ::testing::ValuesIn(runnableLevels()), [](const auto &tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
} // namespace kiln::testing
