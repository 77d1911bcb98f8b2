// SPDX-License-Identifier: Apache-2.0
//
// Contractions with weights that are stored in fewer bits, against a loop in f64 over the numbers that these stand for.
#include "LinearKernel.h"

namespace kiln::testing {
namespace {

/// Numbers that the storage has exactly: short fractions of any sign and magnitude, or whole numbers with 127 or -127
/// among them times a power of two for each output.
Tensor storedNumbers(const std::string &element, int64_t n, int64_t k) {
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
  void check(Kernel &kernel, int64_t m, int64_t n, int64_t k) {
    checkLinear(kernel, m, storedNumbers(element(), n, k));
  }
};

TEST_P(StoredWeights, FewRows) {
  for (int64_t n : {1, 49, 113})
    for (int64_t k : {16, 64}) {
      Kernel one(linearKernel(n, k, layout(), 1), target()), few(linearKernel(n, k, layout(), 9), target());
      check(one, 1, n, k);
      for (int64_t m : {1, 2, 5, 9})
        check(few, m, n, k);
    }
}

TEST_P(StoredWeights, ManyRows) {
  for (auto [n, k] : {std::pair(96, 64), {113, 520}, {48, 1536}}) {
    Kernel kernel(linearKernel(n, k, layout()), target());
    EXPECT_EQ(kernel.object().strategy, "contraction");
    for (int64_t m : {1, 33, 200})
      check(kernel, m, n, k);
  }
}

/// One tile is what a target asks for that reads weights dense.
TEST_P(StoredWeights, OtherTiles) {
  for (int64_t size : {1, 7, 16, 21}) {
    Kernel kernel(linearKernel(21, 40, layout(size), 40), target());
    for (int64_t m : {1, 40})
      check(kernel, m, 21, 40);
  }
}

TEST_P(StoredWeights, PointsOfTheSearchSpace) {
  for (int bound : {1, 13, 200}) {
    const std::string text = linearKernel(113, 64, layout(), bound);
    for (const SchedulePoint &point : pointsToTry(describe(text, target()).space, 3, target())) {
      SCOPED_TRACE(toString(point));
      Kernel kernel(text, target(), &point);
      for (int m : {1, 13, 200})
        if (m <= bound)
          check(kernel, m, 113, 64);
    }
  }
}

TEST_P(StoredWeights, StayWithinTheirMemory) {
  for (int bound : {1, 9, 256}) {
    const MemoryCheck checked = checkMemory(linearKernel(113, 64, layout(), bound), target(), {{{1}}, {{bound}}});
    EXPECT_EQ(checked.fault, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, StoredWeights,
                         ::testing::Combine(::testing::ValuesIn(runnableTargets()),
                                            ::testing::Values("f16", "bf16", "i8")),
                         [](const auto &tested) {
                           std::string name = std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
} // namespace kiln::testing
