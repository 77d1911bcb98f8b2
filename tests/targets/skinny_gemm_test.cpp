// SPDX-License-Identifier: Apache-2.0
//
// Skinny GEMMs and GEMV against a loop in f64: each number of rows, columns that are no multiple of a vector, every
// value of every parameter, and which shape-specialised variants a kernel has.
#include "LinearKernel.h"

namespace kiln::testing {
namespace {

class SkinnyGemm : public ::testing::TestWithParam<std::string> {
protected:
  std::string layout() const { return "#kiln.tiled<0, " + number(findTarget(GetParam())->weightTile(96, 64)) + ">"; }
};

TEST_P(SkinnyGemm, EachNumberOfRows) {
  for (auto [least, most] : {std::pair(1, 32), {2, 32}, {1, 1}, {1, 5}, {17, 19}}) {
    SCOPED_TRACE(number(least) + " to " + number(most) + " rows");
    Kernel kernel(linearKernel(96, 64, layout(), most, least), GetParam());
    EXPECT_EQ(kernel.object().strategy, "skinny_gemm");
    for (int64_t m = least; m <= most; ++m)
      checkLinear(kernel, m, 96, 64);
  }
}

TEST_P(SkinnyGemm, ColumnsAndK) {
  size_t number = 0;
  for (int64_t n : {1, 17, 48, 49, 113, 768})
    for (int64_t k : {1, 7, 64})
      for (int most : {1, 9}) {
        if (!hasTurn(GetParam(), number++))
          continue;
        Kernel kernel(linearKernel(n, k, layout(), most, most > 1 ? 2 : 1), GetParam());
        for (int m : {1, 2, 9})
          if (m <= most && (m > 1 || most == 1))
            checkLinear(kernel, m, n, k);
      }
}

TEST_P(SkinnyGemm, ConfigsOfTheSearchSpace) {
  for (int most : {1, 13}) {
    std::string text = linearKernel(281, 64, layout(), most);
    for (const ScheduleConfig &config : configsToTry(describe(text, GetParam()).space, 6, GetParam())) {
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, GetParam(), &config);
      for (int m : {1, 2, 5, 11, 13})
        if (m <= most)
          checkLinear(kernel, m, 281, 64);
    }
  }
}

TEST_P(SkinnyGemm, PrefetchesAreThereOnRequest) {
  std::string text = linearKernel(96, 64, layout(), 1);
  auto asks = [&](const ScheduleConfig &config) {
    return assemblyOf(text, GetParam(), config).find("prefetcht0") != std::string::npos;
  };
  EXPECT_FALSE(asks({{"prefetch", 0}}));
  EXPECT_TRUE(asks({{"prefetch", 64}}));
}

TEST_P(SkinnyGemm, VectorTimesWeight) {
  // GEMV without a row dimension: x[k] w[n, k]^T, stored by a separate Func since a second result has another shape.
  for (bool hasSecond : {false, true}) {
    KernelText text;
    Value x = text.argument(text.type({"29"})), w = text.argument(KernelText::tiled(53, 29, layout()));
    Value y = text.reduce("pr", {x, w}, text.type({"53"}), {"b", "a, b", "a"}, "0.0 : f32", multiplyAdd);
    Value twice =
        text.one("p", {x}, text.type({"29"}), {"a", "a"}, "%t = arith.addf %x0, %x0 : f32\nlinalg.yield %t : f32");
    Kernel kernel(text.finish(hasSecond ? std::vector<Value>{y, twice} : std::vector<Value>{y}), GetParam());
    EXPECT_EQ(kernel.object().strategy, "skinny_gemm");
    Tensor a = randomTensor({29}), b = randomTensor({53, 29}), expected = Tensor::zeros({53});
    for (int64_t n = 0; n < 53; ++n)
      for (int64_t k = 0; k < 29; ++k)
        expected.at({n}) += a.at({k}) * b.at({n, k});
    expectClose(kernel.run({}, {a, b})[0], expected, 1e-5, false, 1);
  }
}

TEST_P(SkinnyGemm, VariantsOfAKernel) {
  auto variants = [&](const std::string &text) {
    std::vector<int64_t> bounds;
    for (ShapeVariant variant : shapeVariants(text, GetParam())) {
      EXPECT_EQ(variant.symbol, 0u);
      bounds.push_back(variant.bound);
    }
    return bounds;
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(variants(linearKernel(96, 64, layout(), 256)), (Bounds{1, 32}));
  EXPECT_EQ(variants(linearKernel(96, 64, layout(), 256, 2)), (Bounds{32}));
  EXPECT_EQ(variants(linearKernel(96, 64, layout(), 256, 33)), Bounds());
  EXPECT_EQ(variants(linearKernel(96, 64, layout(), 32)), Bounds{1});
  EXPECT_EQ(variants(linearKernel(96, 64, layout(), 1)), Bounds());
  EXPECT_EQ(variants(linearKernel(96, 64, "", 256)), Bounds()); // a dense weight is packed in each call
  // A large weight has one more variant, without row blocks, and one with low tiles where large ones do not divide the
  // usual numbers of rows. It does not have the latter where rows are packed, as rows of 12 KiB are.
  const bool hasLowTiles = std::string(GetParam()) == "x86-64-v3";
  EXPECT_EQ(variants(linearKernel(3072, 768, layout(), 1024)),
            hasLowTiles ? (Bounds{1, 32, 128, 512}) : (Bounds{1, 32, 512}));
  EXPECT_EQ(variants(linearKernel(768, 3072, layout(), 1024)), (Bounds{1, 32, 512}));
  EXPECT_EQ(variants(linearKernel(768, 3072, layout(), 1024, 33)), Bounds{512});
  EXPECT_EQ(variants(linearKernel(768, 3072, layout(), 512)), (Bounds{1, 32}));
}

INSTANTIATE_TEST_SUITE_P(Targets, SkinnyGemm, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
