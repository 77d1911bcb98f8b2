// SPDX-License-Identifier: Apache-2.0
//
// Contractions with quantised weights, against a loop in f64 over the dequantised numbers.
#include "LinearKernel.h"
#include "StoredNumbers.h"
#include <cstdlib>

namespace kiln::testing {
namespace {

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
