// SPDX-License-Identifier: Apache-2.0
//
// A norm of a single row fused with its GEMVs in one launch; and slices of a result that are separate results.
#include "MmaKernel.h"
#include "Prepare.h"
#include "ProductKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

struct Product {
  int columns, kExtent;
  std::string element = "f32";
  bool isAlongColumns = false; // the weight is [K, N], with contiguous columns
};

/// Returns x / root(mean of squares), times a gain, for one row, multiplied by `products` weights. The results are all
/// products, or with `isGated` relu(first) * second.
std::string normKernel(const Product &p, int products = 1, bool isGated = false, bool returnsRow = false) {
  KernelText text;
  const std::string n = std::to_string(p.columns), k = std::to_string(p.kExtent);
  const bool isHalf = p.element != "f32";
  const std::string wide = isHalf ? "%w = arith.extf %x0 : " + p.element + " to f32\n" : "";
  const std::string x0 = isHalf ? "%w" : "%x0";
  Value x = text.argument(text.type({"1", k}, p.element)), gain = text.argument(text.type({k}));
  Value squares = text.reduce("pr", {x}, text.type({"1"}), {"a, b", "a"}, "0.0 : f32",
                              wide + "%p = arith.mulf " + x0 + ", " + x0 +
                                  " : f32\n%s = arith.addf %y0, %p : f32\nlinalg.yield %s : f32");
  Value scale = text.one("p", {squares}, text.type({"1"}), {"a", "a"},
                         "%c = arith.constant " + k +
                             ".0 : f32\n%e = arith.constant 1.0e-5 : f32\n%o = arith.constant 1.0 : f32\n"
                             "%m = arith.divf %x0, %c : f32\n%v = arith.addf %m, %e : f32\n"
                             "%r = math.sqrt %v : f32\n%i = arith.divf %o, %r : f32\nlinalg.yield %i : f32");
  Value row = text.one("pp", {x, scale, gain}, text.type({"1", k}, p.element), {"a, b", "a", "b", "a, b"},
                       wide + "%p = arith.mulf " + x0 + ", %x1 : f32\n%q = arith.mulf %p, %x2 : f32\n" +
                           (isHalf ? "%t = arith.truncf %q : f32 to " + p.element + "\nlinalg.yield %t : " + p.element
                                   : "linalg.yield %q : f32"));
  std::vector<Value> sums;
  for (int i = 0; i < products; ++i) {
    Value w = text.argument(text.type(p.isAlongColumns ? std::vector{k, n} : std::vector{n, k}, p.element));
    sums.push_back(text.reduce("ppr", {row, w}, text.type({"1", n}),
                               {"a, c", p.isAlongColumns ? "c, b" : "b, c", "a, b"}, "0.0 : f32", bodyOf(p.element)));
  }
  if (isGated)
    sums = {text.one("pp", {sums[0], sums[1]}, text.type({"1", n}), {"a, b", "a, b", "a, b"},
                     "%c = arith.constant 0.0 : f32\n%r = arith.maximumf %x0, %c : f32\n"
                     "%p = arith.mulf %r, %x1 : f32\nlinalg.yield %p : f32")};
  if (returnsRow)
    sums.push_back(row);
  return text.finish(sums);
}

void expectOneLaunch(const std::string &text, double tolerance) {
  DeviceKernel kernel(text);
  EXPECT_EQ(kernel.plan().strategy, "skinny_gemm");
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  EXPECT_EQ(kernel.plan().scratchBytes, 0);
  EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
  for (int64_t offset : {0, 4}) {
    kernel.setOffset(offset);
    kernel.check({}, randomInputs(text, {}), tolerance);
  }
}

TEST(CudaNormPrologue, IsComputedByTheProduct) {
  for (bool isAlongColumns : {false, true})
    for (auto [n, k] :
         {std::pair(37, 64), std::pair(64, 512), std::pair(96, 768), std::pair(35, 204), std::pair(5, 33)}) {
      SCOPED_TRACE(number(n) + " x " + number(k) + (isAlongColumns ? " across" : ""));
      expectOneLaunch(normKernel({n, k, "f32", isAlongColumns}), 1e-5);
    }
}

TEST(CudaNormPrologue, OfHalfFloats) {
  for (const char *element : {"f16", "bf16"})
    for (bool isAlongColumns : {false, true}) {
      SCOPED_TRACE(element);
      expectOneLaunch(normKernel({40, 256, element, isAlongColumns}), std::string(element) == "f16" ? 1e-3 : 1e-2);
    }
}

TEST(CudaNormPrologue, ServesSeveralProducts) {
  expectOneLaunch(normKernel({44, 256}, 3), 1e-5);
  expectOneLaunch(normKernel({96, 512}, 2, true), 1e-5);
  expectOneLaunch(normKernel({96, 512, "bf16"}, 2, true), 1e-2);
}

// Not fused: a row that another op reads from memory, several [K, N] weights, of which a launch has only one, and a
// long row.
TEST(CudaNormPrologue, IsALaunchOfItsOwn) {
  for (const std::string &text :
       {normKernel({40, 64}, 1, false, true), normKernel({40, 64, "f32", true}, 2), normKernel({40, 8200})}) {
    DeviceKernel kernel(text);
    EXPECT_GT(kernel.plan().launches.size(), 1U);
    kernel.check({}, randomInputs(text, {}), 1e-5);
  }
}

// NaN and infinities of the row reach all columns.
TEST(CudaNormPrologue, KeepsNan) {
  const std::string text = normKernel({20, 64});
  DeviceKernel kernel(text);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto inputs = randomInputs(text, {});
    inputs[0].at({0, 17}) = bad;
    kernel.check({}, inputs, 1e-5);
  }
}

/// Returns relu(x w), and its columns from `first` on as a separate result.
std::string windowKernel(int rows, int columns, int first, int count, const std::string &element) {
  KernelText text({{1, rows}});
  const std::string n = std::to_string(columns), w = std::to_string(count), at = std::to_string(first);
  Value x = text.argument(text.type({"s0", "72"}, element)), weight = text.argument(text.type({n, "72"}, element));
  Value sum =
      text.reduce("ppr", {x, weight}, text.type({"s0", n}), {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf(element));
  const bool isHalf = element != "f32";
  const std::string yield =
      isHalf ? "%t = arith.truncf %r : f32 to " + element + "\nlinalg.yield %t : " + element : "linalg.yield %r : f32";
  Value all = text.one("pp", {sum}, text.type({"s0", n}, element), {"a, b", "a, b"},
                       "%c = arith.constant 0.0 : f32\n%r = arith.maximumf %x0, %c : f32\n" + yield);
  Value part =
      text.one("pp", {all}, text.type({"s0", w}, element), {"a, b + " + at, "a, b"}, "linalg.yield %x0 : " + element);
  return text.finish({all, part});
}

TEST(CudaWindows, AreStoredWithTheWhole) {
  for (const char *element : {"f32", "bf16"})
    for (auto [first, count] : {std::pair(8, 16), std::pair(16, 24), std::pair(3, 7)})
      for (int rows : {1, 5, 150}) {
        SCOPED_TRACE(number(rows) + " rows, " + number(count) + " columns from " + number(first) + ", " + element);
        const std::string text = windowKernel(rows, 48, first, count, element);
        DeviceKernel kernel(text);
        EXPECT_EQ(kernel.plan().launches.size(), 1U);
        for (int64_t m : {1, rows})
          kernel.check({m}, randomInputs(text, {m}), std::string(element) == "f32" ? 1e-5 : 1e-2);
      }
}

// Where the whole result may overwrite an argument, its slice takes a separate launch.
TEST(CudaWindows, AreApartWhereTheWholeMayBeInPlace) {
  KernelText text({{1, 40}});
  Value x = text.argument(text.type({"s0", "48"}));
  Value all = text.one("pp", {x}, text.type({"s0", "48"}), {"a, b", "a, b"},
                       "%c = arith.constant 0.0 : f32\n%r = arith.maximumf %x0, %c : f32\nlinalg.yield %r : f32");
  Value part = text.one("pp", {all}, text.type({"s0", "16"}), {"a, b + 8", "a, b"}, "linalg.yield %x0 : f32");
  const std::string kernelText = text.finish({all, part}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel(kernelText);
  EXPECT_EQ(kernel.plan().launches.size(), 2U);
  for (int64_t m : {1, 37})
    kernel.check({m}, randomInputs(kernelText, {m}));
}

} // namespace
} // namespace kiln::testing
