// SPDX-License-Identifier: Apache-2.0
//
// Contractions with quantised weights, against a loop in f64 over the dequantised numbers.
#include "LinearKernel.h"
#include <cstdlib>

namespace kiln::testing {
namespace {

/// Returns the group size of "i4, group = 32, zero = true".
int64_t groupOf(const std::string &storage) { return std::stoll(storage.substr(storage.find('=') + 1)); }

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

/// Returns numbers that the storage format represents exactly: short fractions of any sign and magnitude, or integers,
/// including 127 or -127, times a power of two for each output.
Tensor storedNumbers(const std::string &element, int64_t n, int64_t k) {
  if (element.starts_with("i4"))
    return groupedNumbers(element, n, k);
  if (element.starts_with("f4E2M1FN")) {
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
  if (element == "f8E4M3FN") {
    Tensor w = randomIntegers({n, k}, -15, 16), exponents = randomIntegers({n, k}, -9, 5), // less than 448
        scales = randomIntegers({n, k}, -12, 3);
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < k; ++column) {
        double &value = w.at({row, column});
        // Subnormal numbers are up to 7 times 2^-9.
        const double size = std::min(std::abs(value), exponents.at({row, column}) == -9 ? 7.0 : 15.0);
        value = column == row % k ? 448 : std::copysign(std::ldexp(size, int(exponents.at({row, column}))), value);
        value = std::ldexp(column == (row + 1) % k ? -value : value, int(scales.at({row, 0})));
      }
    return w;
  }
  Tensor w = randomIntegers({n, k}, -127, 128), exponents = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row) {
    if (element == "i8")
      w.at({row, row % k}) = row % 2 ? 127 : -127;
    for (int64_t column = 0; column < k; ++column)
      w.at({row, column}) *= std::exp2(exponents.at({row, element == "i8" ? 0 : column}) - 7);
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
  const int64_t deep = element().find("group") != std::string::npos ? 3 * groupOf(element()) : 16;
  Kernel one(linearKernel(113, deep, layout(), 1), target()), few(linearKernel(49, 128, layout(), 9), target());
  EXPECT_EQ(one.object().strategy, "skinny_gemm");
  check(one, 1, 113, deep);
  for (int64_t m : {1, 2, 5, 9})
    check(few, m, 49, 128);
}

/// x w, the gradient through a frozen weight, whose tiles are along the reduction dimension.
TEST_P(StoredWeights, MultipliedTheOtherWay) {
  const int64_t n = 113, k = 3 * 128;
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
  for (auto [n, k] : {std::pair(113, 640), {48, 1536}}) {
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
    Kernel kernel(linearKernel(21, 128, layout(size), 40), target());
    for (int64_t m : {1, 40})
      check(kernel, m, 21, 128);
  }
}

TEST_P(StoredWeights, ConfigsOfTheSearchSpace) {
  for (int bound : {1, 13, 200}) {
    const std::string text = linearKernel(113, 128, layout(), bound);
    for (const ScheduleConfig &config : configsToTry(describe(text, target()).space, 3, target())) {
      if (!isMyTurn())
        continue;
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, target(), &config);
      for (int m : {1, 13, 200})
        if (m <= bound)
          check(kernel, m, 113, 128);
    }
  }
}

TEST_P(StoredWeights, StayWithinTheirMemory) {
  for (int bound : {1, 9, 64})
    if (isMyTurn()) {
      const MemoryCheck checked = checkMemory(linearKernel(49, 128, layout(), bound), target(), {{{1}}, {{bound}}});
      EXPECT_EQ(checked.fault, "");
      EXPECT_GT(checked.checked, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, StoredWeights,
                         ::testing::Combine(::testing::ValuesIn(runnableTargets()),
                                            ::testing::Values("f16", "bf16", "i8", "f8E4M3FN", "f4E2M1FN, group = 32",
                                                              "i4, group = 32", "i4, group = 64",
                                                              "i4, group = 128, zero = true")),
                         [](const auto &tested) {
                           std::string name = std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                           std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

} // namespace
} // namespace kiln::testing
