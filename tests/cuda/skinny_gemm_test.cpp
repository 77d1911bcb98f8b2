// SPDX-License-Identifier: Apache-2.0
//
// GEMV and skinny GEMMs with at most eight rows, where a warp computes a few columns; and a kernel's shape-specialised
// variants for them.
#include "Prepare.h"
#include "ProductKernel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/Compile.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

TEST(CudaSkinnyGemm, OddSizesAndAddresses) {
  for (int bound : {1, 2, 3, 4, 5, 6, 7, 8})
    for (auto [n, k] : {std::pair(1, 1), std::pair(37, 33), std::pair(64, 512), std::pair(35, 204)}) {
      SCOPED_TRACE(number(bound) + " rows, " + number(n) + " x " + number(k));
      std::string text = linearKernel(n, k, "", bound);
      DeviceKernel kernel(text);
      EXPECT_EQ(kernel.plan().strategy, "skinny_gemm");
      EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
      for (int64_t offset : {0, 4}) {
        kernel.setOffset(offset);
        for (int64_t m : {1, bound})
          kernel.check({m}, randomInputs(text, {m}), 1e-5);
      }
    }
}

TEST(CudaSkinnyGemm, ColumnsSideBySide) {
  for (int bound : {1, 3, 8})
    for (bool isTransposed : {false, true}) {
      SCOPED_TRACE(number(bound) + " rows");
      std::string text = matmulKernel({isTransposed, false}, "s0", "s2", "s1", bound == 1 ? 1 : bound);
      std::string fixed = matmulKernel({isTransposed, false}, number(bound), "70", "85", 1);
      DeviceKernel kernel(text), other(fixed);
      EXPECT_EQ(other.plan().strategy, "skinny_gemm");
      EXPECT_EQ(toString(other.plan().schedule),
                bound == 8 ? "lane_columns=16 unroll=1 warps=16" : "lane_columns=16 unroll=2 warps=16");
      EXPECT_EQ(textOf(other).find(".local"), std::string::npos);
      EXPECT_EQ(countOf(textOf(other), "bar.sync"), 1U);
      other.check({1, 0, 1}, randomInputs(fixed, {1, 0, 1}), 1e-5);
      kernel.check({bound, 1, bound}, randomInputs(text, {bound, 1, bound}), 1e-5);
    }
}

// A lane has one column of 70, two of 66 and four of 68, where the address allows it. K takes several steps.
TEST(CudaSkinnyGemm, LanesOfColumns) {
  for (const char *width : {"70", "66", "68"})
    for (int columns : {4, 8, 16, 32}) {
      SCOPED_TRACE(number(columns) + " of " + width);
      const std::string text = matmulKernel({false, false}, "3", width, "185", 1);
      const ScheduleConfig config{{"lane_columns", columns}, {"warps", 4}, {"unroll", 3}};
      DeviceKernel kernel(text, &config);
      for (int64_t offset : {0, 4}) {
        kernel.setOffset(offset);
        kernel.check({1, 0, 1}, randomInputs(text, {1, 0, 1}), 1e-5);
      }
    }
  auto lanesOf = [](const std::string &columns) {
    return DeviceKernel(matmulKernel({false, false}, "1", columns, "64", 1)).plan().schedule.at("lane_columns");
  };
  EXPECT_EQ(lanesOf("768"), 16);
  EXPECT_EQ(lanesOf("4096"), 16);
  EXPECT_EQ(lanesOf("50257"), 32);
}

// Weights are read before griddepcontrol.wait, all other inputs after it.
TEST(CudaSkinnyGemm, WeightsComeBeforeTheWait) {
  for (bool isAlongColumns : {false, true}) {
    const std::string text =
        isAlongColumns ? matmulKernel({false, false}, "1", "64", "512", 1) : linearKernel(64, 512, "", 1);
    DeviceKernel plain(text);
    EXPECT_EQ(plain.plan().images.front().text.find("ld.global.nc"), std::string::npos);
    std::string marked = text;
    marked.insert(marked.find('>', marked.find("%arg1: tensor<")) + 1, " {kiln.weight}");
    DeviceKernel kernel(marked);
    const std::string &early = kernel.plan().images.front().text;
    EXPECT_LT(early.find("ld.global.nc"), early.find("griddepcontrol.wait"));
    EXPECT_LT(early.rfind("griddepcontrol.wait"), early.find("griddepcontrol.launch_dependents"));
    const std::vector<int64_t> symbols = isAlongColumns ? std::vector<int64_t>{1, 0, 1} : std::vector<int64_t>{1};
    kernel.check(symbols, randomInputs(text, symbols), 1e-5);
  }
}

TEST(CudaSkinnyGemm, SumsDoNotDependOnAddresses) {
  for (int bound : {1, 3}) {
    const std::string text = linearKernel(35, 204, "", bound);
    DeviceKernel kernel(text);
    const std::vector<Tensor> inputs = randomInputs(text, {bound});
    const std::vector<double> values = kernel.run({bound}, inputs).front().values;
    kernel.setOffset(4);
    EXPECT_EQ(kernel.run({bound}, inputs).front().values, values);
  }
}

// An index that is 0 because its dimension is 1 counts as a row index: an op that reads the sums there is fused as
// their epilogue, in one launch.
TEST(CudaSkinnyGemm, EpilogueOfOneRow) {
  KernelText text;
  Value x = text.argument(text.type({"1", "64"})), w = text.argument(text.type({"96", "64"}));
  Value bias = text.argument(text.type({"96"}));
  Value sums = text.reduce("ppr", {x, w}, text.type({"1", "96"}), {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd);
  const std::string kernelText =
      text.finish({text.one("pp", {sums, bias}, text.type({"1", "96"}), {"0, b", "b", "a, b"},
                            "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32")});
  DeviceKernel kernel(kernelText);
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  kernel.check({}, randomInputs(kernelText, {}), 1e-5);
}

TEST(CudaSkinnyGemm, InnerLoopOfOneRow) {
  // Eight K iterations of four elements, once more for addresses that are no multiples of 16.
  DeviceKernel kernel(linearKernel(4096, 4096, "", 1));
  EXPECT_EQ(toString(kernel.plan().schedule), "columns=1 unroll=8 warps=4");
  EXPECT_EQ(countOf(textOf(kernel), "fma.rn.f32"), 2 * 32U);
  EXPECT_EQ(countOf(textOf(kernel), "ld.global.nc.v4"), 2 * 8U);
  EXPECT_EQ(countOf(textOf(kernel), "shfl.sync.bfly"), 5U);
}

TEST(CudaSkinnyGemm, VariantsForFewRows) {
  auto boundsOf = [](const std::string &text) {
    std::vector<int64_t> bounds;
    for (const ShapeVariant &variant : shapeVariantsOf(text))
      bounds.push_back(variant.symbol == 0 ? variant.bound : -1);
    return bounds;
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(boundsOf(linearKernel(64, 32, "", 100)), (Bounds{1, 8}));
  EXPECT_EQ(boundsOf(linearKernel(64, 32, "", 8)), (Bounds{1}));
  EXPECT_EQ(boundsOf(linearKernel(64, 32, "", 100, 2)), (Bounds{8}));
  EXPECT_EQ(boundsOf(linearKernel(64, 32, "", 1)), (Bounds{}));
  EXPECT_EQ(boundsOf(matmulKernel({false, false}, "s0", "64", "32", 100)), (Bounds{1, 8}));
}

} // namespace
} // namespace kiln::testing
