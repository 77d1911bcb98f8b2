// SPDX-License-Identifier: Apache-2.0
//
// Contractions with quantised weights, against a loop in f64 over the dequantised numbers.
#include "LinearKernel.h"
#include <cstdlib>

namespace kiln::testing {
namespace {

/// Returns the group size of "i4, group = 32, zero = true"; 0 if there is none.
int64_t groupOf(const std::string &storage) {
  const size_t at = storage.find('=');
  return at == std::string::npos ? 0 : std::stoll(storage.substr(at + 1));
}

/// Returns the numbers along K that cannot be separated.
int64_t wholeOf(const std::string &storage) {
  return storage.starts_with("ui4") || storage.starts_with("i6") ? 256 : std::max<int64_t>(groupOf(storage), 1);
}

/// Returns integers times a power of two for each group of each output: -8 to 7 of either sign, including -8, or, with
/// a zero point, sixteen consecutive integers around it, including the first and the last.
Tensor groupedNumbers(const std::string &storage, int64_t n, int64_t k) {
  const int64_t group = groupOf(storage);
  const bool hasZeros = storage.find("zero") != std::string::npos;
  Tensor w = randomIntegers({n, k}, -8, 8), exponents = randomIntegers({n, k}, -12, 3),
         shifts = randomIntegers({n, k}, -7, 9);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t first = 0; first < k; first += group) {
      w.at({row, first + row % group}) = -8;
      if (hasZeros)
        w.at({row, first + (row + 5) % group}) = 7;
      const double factor = std::exp2(exponents.at({row, first})) * (!hasZeros && row % 3 == 0 ? -1 : 1);
      for (int64_t i = first; i < first + group; ++i)
        w.at({row, i}) = (w.at({row, i}) + (hasZeros ? shifts.at({row, first}) : 0)) * factor;
    }
  return w;
}

/// Returns e2m1 times a power of two for each group of 32 of each output.
Tensor mxfp4Numbers(int64_t n, int64_t k) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Tensor w = randomIntegers({n, k}, -7, 8), exponents = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      double &value = w.at({row, column});
      const int64_t code = column % 32 == row % 32 ? 6 + row % 2 : int64_t(std::abs(value)); // 4 or 6
      value = std::ldexp(value < 0 ? -values[code] : values[code], int(exponents.at({row, column / 32 * 32})));
    }
  return w;
}

/// Returns e2m1, with a 6 in each group of 16, times an e4m3 for each group, with a 448 in each output, times a power
/// of two for each output.
Tensor nvfp4Numbers(int64_t n, int64_t k) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Tensor w = randomIntegers({n, k}, -7, 8), fractions = randomIntegers({n, k}, 8, 16),
         exponents = randomIntegers({n, k}, -9, 3), outers = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 16 * 16;
      const double scale =
          first == row % (k / 16) * 16 ? 448 : std::ldexp(fractions.at({row, first}), int(exponents.at({row, first})));
      double &value = w.at({row, column});
      const int64_t code = column % 16 == row % 16 ? 7 : int64_t(std::abs(value));
      value = (value < 0 ? -values[code] : values[code]) * std::ldexp(scale, int(outers.at({row, 0})));
    }
  return w;
}

/// Returns the integers 0 to 15, the first and the last in each group of 32, times an integer for each group, less a
/// quarter of another one; all times a power of two for each block of 256, in which both integers are 63 once.
Tensor q4KNumbers(int64_t n, int64_t k) {
  Tensor w = randomIntegers({n, k}, 0, 16), scales = randomIntegers({n, k}, 5, 64),
         minimums = randomIntegers({n, k}, 0, 64), outers = randomIntegers({n, k}, -10, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 32 * 32, group = first / 32 % 8;
      const double scale = group == row % 8 ? 63 : scales.at({row, first}),
                   minimum = group == (row + 3) % 8 ? 63 : minimums.at({row, first});
      double &value = w.at({row, column});
      value = column % 32 == row % 32 ? 0 : column % 32 == (row + 5) % 32 ? 15 : value;
      value = std::ldexp(value * scale - minimum / 4, int(outers.at({row, column / 256 * 256})));
    }
  return w;
}

/// Returns the integers -32 to 31, the first in each group of 16, times an integer for each group, times a power of two
/// of either sign for each block of 256, in which the integer is -128 once.
Tensor q6KNumbers(int64_t n, int64_t k) {
  Tensor w = randomIntegers({n, k}, -32, 32), scales = randomIntegers({n, k}, -127, 128),
         outers = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 16 * 16;
      const double scale = first / 16 % 16 == row % 16 ? -128 : scales.at({row, first});
      double &value = w.at({row, column});
      value = column % 16 == row % 16 ? -32 : value;
      value *= std::ldexp(row % 3 == 0 ? -scale : scale, int(outers.at({row, column / 256 * 256})));
    }
  return w;
}

/// Returns e4m3 of any exponent, with 448 of either sign, times a power of two for each group of each output.
Tensor fp8Numbers(int64_t n, int64_t k, int64_t group) {
  Tensor w = randomIntegers({n, k}, -15, 16), exponents = randomIntegers({n, k}, -9, 5), // less than 448
      scales = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      double &value = w.at({row, column});
      const int64_t first = column / group * group;
      // Subnormal numbers are up to 7 times 2^-9.
      const double size = std::min(std::abs(value), exponents.at({row, column}) == -9 ? 7.0 : 15.0);
      value = column - first == row % group ? 448
                                            : std::copysign(std::ldexp(size, int(exponents.at({row, column}))), value);
      value = std::ldexp(column - first == (row + 1) % group ? -value : value, int(scales.at({row, first})));
    }
  return w;
}

/// Returns numbers that the storage format represents exactly: short fractions of any sign and magnitude, or integers,
/// including 127 or -127, times a power of two for each output, or group.
Tensor storedNumbers(const std::string &element, int64_t n, int64_t k) {
  const int64_t group = groupOf(element) ? groupOf(element) : k;
  if (element.starts_with("i4"))
    return groupedNumbers(element, n, k);
  if (element.starts_with("f4E2M1FN"))
    return group == 16 ? nvfp4Numbers(n, k) : mxfp4Numbers(n, k);
  if (element.starts_with("f8E4M3FN"))
    return fp8Numbers(n, k, group);
  if (element.starts_with("ui4"))
    return q4KNumbers(n, k);
  if (element.starts_with("i6"))
    return q6KNumbers(n, k);
  Tensor w = randomIntegers({n, k}, -127, 128), exponents = randomIntegers({n, k}, -12, 3);
  const bool isOfBytes = element.starts_with("i8");
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / group * group;
      double &value = w.at({row, column});
      if (isOfBytes && column - first == row % group)
        value = row % 2 ? 127 : -127;
      value *= std::exp2(exponents.at({row, isOfBytes ? first : column}) - (groupOf(element) ? 0 : 7)); // f16 is normal
    }
  return w;
}

class StoredWeights : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  const std::string &target() const { return std::get<0>(GetParam()); }
  const std::string &element() const { return std::get<1>(GetParam()); }
  std::string layout(int64_t size) const {
    return "#kiln.tiled<0, " + number(size) + ", storage = <" + element() + ">>";
  }
  std::string layout() const { return layout(findTarget(target())->weightTile(96, 64)); }
  /// Returns the next multiple of what the format cannot separate.
  int64_t deep(int64_t k) const { return (k + wholeOf(element()) - 1) / wholeOf(element()) * wholeOf(element()); }
  /// Each case runs with one of the storage formats in turn, with KILN_TEST_ALL in the environment with all of them.
  bool isMyTurn() const {
    static size_t number = 0;
    return std::getenv("KILN_TEST_ALL") || number++ % 5 == 0;
  }
  void check(Kernel &kernel, int64_t m, int64_t n, int64_t k) {
    checkLinear(kernel, m, storedNumbers(element(), n, k));
  }
};

TEST_P(StoredWeights, SkinnyGemm) {
  const int64_t depth = deep(groupOf(element()) ? 3 * groupOf(element()) : 16), other = deep(128);
  Kernel one(linearKernel(113, depth, layout(), 1), target()), few(linearKernel(49, other, layout(), 9), target());
  EXPECT_EQ(one.object().strategy, "skinny_gemm");
  check(one, 1, 113, depth);
  for (int64_t m : {1, 2, 5, 9})
    check(few, m, 49, other);
}

/// x w, the gradient through a frozen weight, whose tiles are along the reduction dimension.
TEST_P(StoredWeights, MultipliedTheOtherWay) {
  const int64_t n = 113, k = deep(3 * 128);
  KernelText text({{1, 200}});
  Value x = text.argument(text.type({"s0", number(n)})), w = text.argument(KernelText::tiled(n, k, layout()));
  Value y =
      text.reduce("ppr", {x, w}, text.type({"s0", number(k)}), {"a, c", "c, b", "a, b"}, "0.0 : f32", multiplyAdd);
  Kernel kernel(text.finish({y}), target());
  EXPECT_EQ(kernel.object().strategy, "contraction");
  const Tensor weight = storedNumbers(element(), n, k);
  for (int64_t m : {1, 7, 200}) {
    SCOPED_TRACE(m);
    Tensor rows = randomTensor({m, n}), expected = Tensor::zeros({m, k});
    for (int64_t row = 0; row < m; ++row)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t column = 0; column < k; ++column)
          expected.at({row, column}) += rows.at({row, i}) * weight.at({i, column});
    expectClose(kernel.run({m}, {rows, weight})[0], expected, 1e-5, false, 1);
  }
}

TEST_P(StoredWeights, ManyRows) {
  for (auto [n, k] : {std::pair(int64_t(113), deep(640)), {48, 1536}}) {
    if (!isMyTurn())
      continue;
    Kernel kernel(linearKernel(n, k, layout()), target());
    EXPECT_EQ(kernel.object().strategy, "contraction");
    for (int64_t m : {1, 33, 200})
      check(kernel, m, n, k);
  }
}

/// Targets that read weights dense request a single tile.
TEST_P(StoredWeights, OtherTiles) {
  for (int64_t size : {1, 7, 16, 21}) {
    if (!isMyTurn())
      continue;
    Kernel kernel(linearKernel(21, deep(128), layout(size), 40), target());
    for (int64_t m : {1, 40})
      check(kernel, m, 21, deep(128));
  }
}

TEST_P(StoredWeights, ConfigsOfTheSearchSpace) {
  for (int bound : {1, 13, 200}) {
    const std::string text = linearKernel(113, deep(128), layout(), bound);
    for (const ScheduleConfig &config : configsToTry(describe(text, target()).space, 3, target())) {
      if (!isMyTurn())
        continue;
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, target(), &config);
      for (int m : {1, 13, 200})
        if (m <= bound)
          check(kernel, m, 113, deep(128));
    }
  }
}

TEST_P(StoredWeights, StayWithinTheirMemory) {
  for (int bound : {1, 9, 64})
    if (isMyTurn()) {
      const MemoryCheck checked =
          checkMemory(linearKernel(49, deep(128), layout(), bound), target(), {{{1}}, {{bound}}});
      EXPECT_EQ(checked.fault, "");
      EXPECT_GT(checked.checked, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, StoredWeights,
                         ::testing::Combine(::testing::ValuesIn(runnableTargets()),
                                            ::testing::Values("f16", "bf16", "i8", "f8E4M3FN", "f4E2M1FN, group = 32",
                                                              "i4, group = 32", "i4, group = 64",
                                                              "i4, group = 128, zero = true", "i8, group = 32",
                                                              "f8E4M3FN, group = 128", "f4E2M1FN, group = 16",
                                                              "ui4, group = 32", "i6, group = 16")),
                         [](const auto &tested) {
                           std::string name = std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                           std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

} // namespace
} // namespace kiln::testing
