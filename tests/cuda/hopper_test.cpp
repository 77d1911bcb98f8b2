// SPDX-License-Identifier: Apache-2.0
//
// GEMMs by wgmma: inputs of each type and layout, odd dimensions, several tiles per block, batches, epilogues; which
// GEMMs have the TMA variant and when it is launched; and the instructions of the inner loop.
#include "DeviceKernel.h"
#include "ProductKernel.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// A contraction: the shapes of x, w and y, with loops a, b, c, .. as in KernelText, and its element type.
struct Product {
  std::string loops;
  std::vector<std::string> x, w, y, maps;
  std::string element;
};

std::string bodyOf(const std::string &element) {
  if (element == "f32")
    return multiplyAdd;
  const std::string to = " : " + element + " to f32\n";
  return "%p = arith.extf %x0" + to + "%q = arith.extf %x1" + to +
         "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";
}

const std::string tf32 = "kiln.tf32";

std::string textOf(const Product &p, const std::vector<std::pair<int, int>> &symbols,
                   const std::string &attributes = tf32) {
  KernelText text(symbols);
  Value x = text.argument(text.type(p.x, p.element)), w = text.argument(text.type(p.w, p.element));
  return text.finish({text.reduce(p.loops, {x, w}, text.type(p.y), p.maps, "0.0 : f32", bodyOf(p.element))},
                     attributes);
}

/// x [m, k] or [k, m], w [n, k] or [k, n].
Product matrices(const std::string &element, Form form, const std::string &m, const std::string &n,
                 const std::string &k) {
  return {"ppr",
          form.transposeA ? std::vector{k, m} : std::vector{m, k},
          form.transposeB ? std::vector{n, k} : std::vector{k, n},
          {m, n},
          form.maps(),
          element};
}

/// Returns integers: products are exact in each type, sums in f32.
std::vector<Tensor> wholeInputs(const std::string &text, const std::vector<int64_t> &symbols) {
  std::vector<Tensor> inputs = randomInputs(text, symbols);
  for (Tensor &input : inputs)
    input = randomIntegers(input.shape, -8, 9);
  return inputs;
}

constexpr Form weights{false, true}; // the layout of linear layers

/// Runs the kernel's TMA variant and compares with a sum in f64.
void checkMatrices(DeviceKernel &kernel, const std::string &text, Form form, int64_t m, int64_t n, int64_t k,
                   const std::vector<int64_t> &symbols, bool hasTma = true) {
  SCOPED_TRACE(number(m) + " x " + number(n) + " x " + number(k));
  const std::vector<Tensor> inputs = wholeInputs(text, symbols);
  const int before = kernel.tmaLaunches();
  const Tensor got = kernel.run(symbols, inputs)[0];
  EXPECT_EQ(kernel.tmaLaunches() - before, hasTma);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c)
        sum += inputs[0].values[form.transposeA ? c * m + i : i * k + c] *
               inputs[1].values[form.transposeB ? j * k + c : c * n + j];
      ASSERT_EQ(got.values[i * n + j], sum) << i << " " << j;
    }
}

TEST(CudaHopper, TypesAndOrders) {
  for (std::string element : {"f16", "bf16", "f32"})
    for (Form form : {weights, Form{false, false}, Form{true, true}, Form{true, false}}) {
      if (element == "f32" && !(form.transposeB && !form.transposeA))
        continue;
      SCOPED_TRACE(element + " " + form.maps()[0] + " " + form.maps()[1]);
      const std::string text = textOf(matrices(element, form, "s0", "s2", "s1"), {{1, 4000}, {0, 4000}, {1, 4000}});
      DeviceKernel kernel(text);
      ASSERT_TRUE(kernel.plan().tmaImage);
      kernel.setTma(3);
      for (auto [m, n, k] : {std::tuple(8, 8, 8), std::tuple(136, 264, 200), std::tuple(264, 72, 72)})
        checkMatrices(kernel, text, form, m, n, k, {m, k, n});
    }
}

/// Compares with the interpreter's result for the same contraction in f32. Inputs are integers, so that results are
/// exact.
void checkExactly(Product product, int64_t m, const ScheduleConfig *config = nullptr) {
  const std::string text = textOf(product, {{1, 1000}});
  DeviceKernel kernel(text, config);
  ASSERT_TRUE(kernel.plan().tmaImage);
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  kernel.setTma(2);
  const std::vector<Tensor> inputs = wholeInputs(text, {m});
  const Tensor got = kernel.run({m}, inputs)[0];
  EXPECT_EQ(kernel.tmaLaunches(), 1);
  product.element = "f32";
  DeviceKernel reference(textOf(product, {{1, 1000}}));
  EXPECT_EQ(got.values, reference.expected({m}, inputs)[0]->values);
}

TEST(CudaHopper, LoopsThatCountAsOne) {
  const std::vector<Product> products{
      {"pppr", {"3", "s0", "24"}, {"3", "40", "24"}, {"3", "s0", "40"}, {"a, b, d", "a, c, d", "a, b, c"}, "f16"},
      {"pppr", {"s0", "3", "64"}, {"s0", "3", "64"}, {"3", "s0", "s0"}, {"b, a, d", "c, a, d", "a, b, c"}, "bf16"},
      {"pppr", {"3", "s0", "s0"}, {"s0", "3", "72"}, {"s0", "3", "72"}, {"b, a, d", "d, b, c", "a, b, c"}, "f16"},
      {"pppr", {"s0", "5", "32"}, {"36", "32"}, {"s0", "5", "36"}, {"a, b, d", "c, d", "a, b, c"}, "f32"},
      {"pppr", {"s0", "16"}, {"16", "7", "8"}, {"s0", "7", "8"}, {"a, d", "d, b, c", "a, b, c"}, "f16"},
      {"pprr", {"s0", "3", "8"}, {"40", "3", "8"}, {"s0", "40"}, {"a, c, d", "b, c, d", "a, b"}, "bf16"},
      {"ppppr",
       {"2", "3", "s0", "16"},
       {"2", "3", "40", "16"},
       {"2", "3", "s0", "40"},
       {"a, b, c, e", "a, b, d, e", "a, b, c, d"},
       "f16"}};
  for (const Product &product : products)
    for (int64_t m : {8, 136}) {
      SCOPED_TRACE(product.maps[0] + " by " + product.maps[1] + ", " + number(m));
      checkExactly(product, m);
    }
}

using InMemoryOf = std::optional<std::pair<unsigned, unsigned>>; // (result, argument) that share memory

double quickGelu(double v) { return v / (1 + std::exp(-v)); }

TEST(CudaHopper, Epilogue) {
  // gelu(x w^T + bias) + residual, whose memory the result may overwrite; sums are small, so that gelu is not flat.
  const int64_t n = 200, k = 72;
  for (std::string element : {"f16", "f32"}) {
    KernelText text({{1, 5000}});
    const std::string wide = text.type({"s0", number(n)});
    Value x = text.argument(text.type({"s0", number(k)}, element)),
          w = text.argument(text.type({number(n), number(k)}, element));
    Value bias = text.argument(text.type({number(n)})), residual = text.argument(wide);
    Value product = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf(element));
    Value y = text.one("pp", {product, bias, residual}, wide, {"a, b", "b", "a, b", "a, b"},
                       "%one = arith.constant 1.0 : f32\n%t = arith.addf %x0, %x1 : f32\n%u = arith.negf %t : f32\n"
                       "%e = math.exp %u : f32\n%d = arith.addf %e, %one : f32\n%g = arith.divf %t, %d : f32\n"
                       "%v = arith.addf %g, %x2 : f32\nlinalg.yield %v : f32");
    DeviceKernel kernel(text.finish({y}, "kiln.tf32, kiln.inplace = array<i64: 3>"));
    EXPECT_EQ(kernel.plan().launches.size(), 1U);
    kernel.setTma(2);
    for (int64_t m : {1, 65, 300}) {
      Tensor a = randomIntegers({m, k}, -8, 9), b = randomIntegers({n, k}, -8, 9);
      for (Tensor *tensor : {&a, &b})
        for (double &value : tensor->values)
          value /= 32;
      const std::vector<Tensor> inputs{a, b, randomTensor({n}), randomTensor({m, n})};
      for (InMemoryOf shared : {InMemoryOf(), InMemoryOf({0U, 3U})}) {
        const Tensor got = kernel.run({m}, inputs, shared)[0];
        for (int64_t i = 0; i < m * n; ++i) {
          double sum = inputs[2].values[i % n];
          for (int64_t c = 0; c < k; ++c)
            sum += a.values[i / n * k + c] * b.values[i % n * k + c];
          ASSERT_NEAR(got.values[i], quickGelu(sum) + inputs[3].values[i], 1e-5) << i;
        }
      }
    }
    EXPECT_EQ(kernel.tmaLaunches(), 6);
  }
}

/// Results whose row pitches are multiples of 4, 2 and 1 elements, at aligned and unaligned addresses.
TEST(CudaHopper, StoresNeighboursTogether) {
  const std::string to = " : f32 to f16\n";
  for (auto [n, together] : {std::pair(200, 4), {198, 2}, {199, 1}}) {
    KernelText text({{1, 5000}});
    Value x = text.argument(text.type({"s0", "72"}, "f16")), w = text.argument(text.type({number(n), "72"}, "f16"));
    const std::string wide = text.type({"s0", number(n)});
    Value sums = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf("f16"));
    Value y = text.one("pp", {sums}, text.type({"s0", number(n)}, "f16"), {"a, b", "a, b"},
                       "%t = arith.truncf %x0" + to + "linalg.yield %t : f16");
    DeviceKernel kernel(text.finish({y}));
    const std::string &ptx = kernel.plan().tmaImage->text;
    EXPECT_EQ(countOf(ptx, "st.global.v4") + countOf(ptx, "st.global.v2") + countOf(ptx, "st.global.b32") > 0,
              together > 1);
    kernel.setTma(2);
    Tensor a = randomIntegers({130, 72}, -2, 3), b = randomIntegers({n, 72}, -2, 3);
    for (int64_t offset : {0, 4, 2}) {
      SCOPED_TRACE(number(n) + " columns, " + number(offset) + " bytes");
      kernel.setOffset(0, offset);
      const Tensor got = kernel.run({130}, {a, b})[0];
      for (int64_t i = 0; i < 130 * n; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < 72; ++c)
          sum += a.values[i / n * 72 + c] * b.values[i % n * 72 + c];
        ASSERT_EQ(got.values[i], sum) << i;
      }
    }
    EXPECT_EQ(kernel.tmaLaunches(), 3);
  }
}

TEST(CudaHopper, NotANumberStaysInItsRowAndColumn) {
  const int64_t m = 200, n = 136, k = 88;
  const std::string text = textOf(matrices("bf16", weights, "s0", number(n), number(k)), {{1, 3000}});
  DeviceKernel kernel(text);
  kernel.setTma(2);
  std::vector<Tensor> inputs = wholeInputs(text, {m});
  inputs[0].at({70, 87}) = std::numeric_limits<double>::infinity();
  inputs[1].at({135, 3}) = std::numeric_limits<double>::quiet_NaN();
  const Tensor got = kernel.run({m}, inputs)[0];
  EXPECT_EQ(kernel.tmaLaunches(), 1);
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < k; ++c)
      sum += inputs[0].values[i / n * k + c] * inputs[1].values[i % n * k + c];
    ASSERT_TRUE(got.values[i] == sum || (std::isnan(got.values[i]) && std::isnan(sum))) << i;
  }
}

TEST(CudaHopper, Tf32OfAnyNumbers) {
  const std::string text = textOf(matrices("f32", weights, "s0", "96", "100"), {{1, 3000}});
  DeviceKernel kernel(text);
  kernel.setTma(2);
  kernel.check({150}, randomInputs(text, {150}), 2e-3);
  EXPECT_EQ(kernel.tmaLaunches(), 1);
}

//===- Sizes -------------------------------------------------------------===//

/// Checks a GEMM with that schedule, with one to eight tiles on two multiprocessors.
void checkSchedule(const Product &product, Form form, const ScheduleConfig &config) {
  SCOPED_TRACE(product.element + " " + form.maps()[0] + " " + form.maps()[1] + " " + toString(config));
  const std::string text = textOf(product, {{1, 4000}, {1, 4000}, {1, 4000}});
  DeviceKernel kernel(text, &config);
  ASSERT_TRUE(kernel.plan().tmaImage);
  EXPECT_EQ(countOf(kernel.plan().tmaImage->text, ".local"), 0U);
  kernel.setTma(2);
  checkMatrices(kernel, text, form, 200, 72, 136, {200, 136, 72});
}

TEST(CudaHopper, EndsOfTheSearchSpace) {
  const Product products[] = {matrices("f16", weights, "s0", "s2", "s1"), matrices("f32", weights, "s0", "s2", "s1"),
                              matrices("bf16", {true, false}, "s0", "s2", "s1")};
  size_t next = 0;
  for (const ScheduleConfig &config : endsOf(spaceOf(textOf(products[0], {{1, 4000}, {1, 4000}, {1, 4000}})), true)) {
    const size_t number = next++ % 3;
    checkSchedule(products[number], number == 2 ? Form{true, false} : weights, config);
  }
}

TEST(CudaHopper, GroupsAndColumns) {
  for (auto [bm, bn, groups] : {std::tuple(256, 128, 2), std::tuple(128, 192, 2), std::tuple(64, 256, 1),
                                std::tuple(256, 64, 1), std::tuple(128, 128, 1)})
    for (Form form : {weights, Form{true, false}}) {
      const ScheduleConfig config{
          {"wgmma_bm", bm}, {"wgmma_bn", bn}, {"wgmma_groups", groups}, {"wgmma_stages", 3}, {"wgmma_raster", 1}};
      checkSchedule(matrices(form.transposeA ? "bf16" : "f16", form, "s0", "s2", "s1"), form, config);
    }
}

/// Clusters with multicast copies: each type and layout of b, half boxes of all sizes, odd numbers of row tiles, one
/// tile for two blocks, several for each, and multiprocessor counts that are no multiple of two.
TEST(CudaHopper, ClustersShareCopies) {
  for (auto [element, form, bm, bn, groups] :
       {std::tuple("f16", weights, 128, 256, 2), std::tuple("bf16", Form{false, false}, 64, 192, 1),
        std::tuple("f16", Form{true, true}, 256, 64, 2), std::tuple("bf16", Form{true, false}, 128, 64, 2),
        std::tuple("f32", weights, 64, 128, 1)}) {
    SCOPED_TRACE(std::string(element) + " " + form.maps()[0] + " " + form.maps()[1]);
    const std::string text = textOf(matrices(element, form, "s0", "s2", "s1"), {{1, 4000}, {1, 4000}, {1, 4000}});
    const ScheduleConfig config{{"wgmma_bm", bm},    {"wgmma_bn", bn},     {"wgmma_groups", groups},
                                {"wgmma_stages", 2}, {"wgmma_cluster", 2}, {"wgmma_raster", 1}};
    DeviceKernel kernel(text, &config);
    ASSERT_TRUE(kernel.plan().tmaImage);
    EXPECT_EQ(kernel.plan().tmaFunctions.front().cluster, 2U);
    for (auto [multiprocessors, m, n, k] : {std::tuple(8, 8, 8, 8), std::tuple(2, 3 * bm - 8, 2 * bn - 8, 136),
                                            std::tuple(5, bm + 8, 3 * bn, 200), std::tuple(1, 2 * bm, bn + 8, 72)}) {
      kernel.setTma(uint32_t(multiprocessors));
      checkMatrices(kernel, text, form, m, n, k, {m, k, n});
    }
  }
}

TEST(CudaHopper, ClustersOfBatches) {
  const ScheduleConfig config{{"wgmma_cluster", 2}, {"wgmma_bm", 64}, {"wgmma_groups", 1}};
  checkExactly(
      {"pppr", {"3", "s0", "24"}, {"3", "40", "24"}, {"3", "s0", "40"}, {"a, b, d", "a, c, d", "a, b, c"}, "f16"}, 136,
      &config);
  checkExactly(
      {"pppr", {"3", "s0", "s0"}, {"s0", "3", "72"}, {"s0", "3", "72"}, {"b, a, d", "d, b, c", "a, b, c"}, "bf16"}, 72,
      &config);
}

/// Split-K within a cluster: all numbers of splits, of which some have no K steps; fewer output units to finish than
/// warps, and more; one tile per cluster, and several, so that pipeline stages are reused.
TEST(CudaHopper, BlocksShareK) {
  for (auto [element, form, bm, bn, groups, split] :
       {std::tuple("f16", weights, 64, 64, 1, 2), std::tuple("bf16", Form{false, false}, 128, 128, 2, 4),
        std::tuple("f16", Form{true, true}, 64, 192, 1, 8), std::tuple("bf16", Form{true, false}, 256, 128, 2, 2),
        std::tuple("f32", weights, 64, 128, 1, 4), std::tuple("f16", weights, 128, 64, 1, 8)}) {
    SCOPED_TRACE(std::string(element) + " " + form.maps()[0] + " " + form.maps()[1] + " " + number(split));
    const std::string text = textOf(matrices(element, form, "s0", "s2", "s1"), {{1, 4000}, {1, 4000}, {1, 4000}});
    const ScheduleConfig config{{"wgmma_bm", bm},    {"wgmma_bn", bn},       {"wgmma_groups", groups},
                                {"wgmma_stages", 3}, {"wgmma_split", split}, {"wgmma_raster", 1}};
    DeviceKernel kernel(text, &config);
    ASSERT_TRUE(kernel.plan().tmaImage);
    EXPECT_EQ(kernel.plan().launches.size(), 1U);
    EXPECT_EQ(kernel.plan().tmaFunctions.front().cluster, uint32_t(split));
    EXPECT_EQ(countOf(kernel.plan().tmaImage->text, ".local"), 0U);
    for (auto [multiprocessors, m, n, k] :
         {std::tuple(8, 8, 8, 8), std::tuple(8, bm + 8, 2 * bn - 8, 200), std::tuple(1, 24, bn + 8, 584)}) {
      kernel.setTma(uint32_t(multiprocessors));
      checkMatrices(kernel, text, form, m, n, k, {m, k, n});
    }
  }
}

TEST(CudaHopper, PartsOfBatches) {
  const ScheduleConfig config{{"wgmma_split", 2}, {"wgmma_bm", 64}, {"wgmma_bn", 64}, {"wgmma_groups", 1}};
  checkExactly(
      {"pppr", {"3", "s0", "72"}, {"3", "40", "72"}, {"3", "s0", "40"}, {"a, b, d", "a, c, d", "a, b, c"}, "f16"}, 136,
      &config);
}

/// Partial sums are added in one order, whatever the number of clusters and of tiles per cluster.
TEST(CudaHopper, PartsAreAddedInOneOrder) {
  const ScheduleConfig config{{"wgmma_split", 4}, {"wgmma_bm", 64}, {"wgmma_bn", 64}, {"wgmma_groups", 1}};
  const std::string text = textOf(matrices("f32", weights, "s0", "72", "328"), {{1, 3000}});
  DeviceKernel kernel(text, &config);
  const std::vector<Tensor> inputs = randomInputs(text, {80});
  kernel.setTma(16);
  kernel.check({80}, inputs, 2e-3);
  const Tensor all = kernel.run({80}, inputs)[0];
  kernel.setTma(1);
  EXPECT_EQ(kernel.run({80}, inputs)[0].values, all.values);
  EXPECT_EQ(kernel.tmaLaunches(), 3);
}

TEST(CudaHopper, RefusesWhatDoesNotFit) {
  const std::string text = textOf(matrices("f16", weights, "s0", "512", "512"), {{1, 4000}});
  auto expectRule = [&](const ScheduleConfig &config, const std::string &rule) {
    EXPECT_EQ(refusal(text, &config).find("contraction schedule: invalid combination; expected " + rule), 0U)
        << refusal(text, &config);
  };
  expectRule({{"wgmma_bm", 64}}, "64 rows of wgmma_bm at least for each of wgmma_groups");
  expectRule({{"wgmma_bm", 256}, {"wgmma_bn", 256}, {"wgmma_stages", 2}}, "232 registers at most");
  expectRule({{"wgmma_bn", 256}, {"wgmma_stages", 5}}, "227 KiB of shared memory at most");
  expectRule({{"wgmma_cluster", 2}, {"wgmma_split", 2}}, "wgmma_cluster or wgmma_split of 1");
  expectRule({{"wgmma_bm", 128}, {"wgmma_bn", 256}, {"wgmma_stages", 2}, {"wgmma_split", 2}},
             "stages that have room for f32 sums of wgmma_bm * wgmma_bn where wgmma_split is not 1");
  const ScheduleConfig config{{"wgmma_bm", 128}};
  EXPECT_EQ(refusal(textOf(matrices("f32", weights, "s0", "512", "512"), {{1, 4000}}, ""), &config),
            "contraction schedule has no parameter \"wgmma_bm\"");
}

//===- Supported GEMMs ---------------------------------------------------===//

TEST(CudaHopper, TakesTheOtherFormOfOtherTensors) {
  const std::string text = textOf(matrices("f16", weights, "s0", "s2", "s1"), {{1, 4000}, {0, 4000}, {1, 4000}});
  DeviceKernel kernel(text);
  kernel.setTma(3);
  checkMatrices(kernel, text, weights, 70, 33, 72, {70, 72, 33});
  checkMatrices(kernel, text, weights, 70, 33, 71, {70, 71, 33}, false);
  checkMatrices(kernel, text, weights, 70, 33, 0, {70, 0, 33}, false);
  kernel.setOffset(4);
  checkMatrices(kernel, text, weights, 70, 33, 72, {70, 72, 33}, false);
  kernel.setOffset(16);
  checkMatrices(kernel, text, weights, 70, 33, 72, {70, 72, 33});
}

TEST(CudaHopper, LeavesOthersAlone) {
  auto hasTma = [](const Product &product, const std::string &attributes = tf32, int rows = 1000) {
    return DeviceKernel(textOf(product, {{1, rows}}, attributes)).plan().tmaImage.has_value();
  };
  const Product plain = matrices("f32", weights, "s0", "64", "64");
  EXPECT_TRUE(hasTma(plain));
  EXPECT_FALSE(hasTma(plain, "")) << "f32 is exact unless tf32 is asked for";
  EXPECT_FALSE(hasTma(plain, tf32, 63)) << "few rows";
  EXPECT_TRUE(hasTma(matrices("f32", weights, "s0", "512", "512"), tf32, 63)) << "of a large weight";
  EXPECT_FALSE(hasTma(matrices("f32", {false, false}, "s0", "64", "64"))) << "K is not contiguous";
  EXPECT_TRUE(hasTma(matrices("f16", {false, false}, "s0", "64", "64")));
  EXPECT_FALSE(hasTma(matrices("f16", weights, "s0", "64", "70"))) << "pitches of 140 bytes";
  EXPECT_FALSE(hasTma({"ppprr",
                       {"s0", "136", "8"},
                       {"3", "8", "64"},
                       {"s0", "67", "64"},
                       {"a, b * 2 + d, e", "d, e, c", "a, b, c"},
                       "f16"}))
      << "windows";
  EXPECT_FALSE(
      hasTma({"pprr", {"s0", "3", "8"}, {"64", "8", "3"}, {"s0", "64"}, {"a, c, d", "b, d, c", "a, b"}, "f16"}))
      << "two loops of K in different orders";
}

//===- Default configurations --------------------------------------------===//

std::string linear(int rows, int columns, int kExtent) {
  return textOf(matrices("bf16", weights, "s0", number(columns), number(kExtent)), {{1, rows}});
}

/// The default tiles fill a wave of blocks where there are few rows, and are large where there are many.
TEST(CudaHopper, TilesAreForAllMultiprocessors) {
  using Shape = std::vector<int64_t>;
  auto shape = [](int rows, int columns, int kExtent) {
    const ScheduleConfig config = defaultConfigOf(spaceOf(linear(rows, columns, kExtent)));
    return Shape{config.at("wgmma_bm"), config.at("wgmma_bn"), config.at("wgmma_groups"), config.at("wgmma_split"),
                 config.at("wgmma_stages")};
  };
  EXPECT_EQ(shape(8192, 4096, 4096), (Shape{128, 256, 2, 1, 4}));
  EXPECT_EQ(shape(4096, 768, 768), (Shape{128, 192, 2, 1, 5})) << "128 tiles";
  EXPECT_EQ(shape(4096, 768, 3072), (Shape{128, 192, 2, 1, 5}));
  EXPECT_EQ(shape(512, 4096, 4096), (Shape{128, 256, 2, 2, 4})) << "64 tiles by two blocks";
  EXPECT_EQ(shape(128, 4096, 4096), (Shape{128, 64, 2, 2, 8}));
  EXPECT_EQ(shape(64, 4096, 4096), (Shape{64, 64, 1, 2, 8}));
  EXPECT_EQ(shape(128, 3072, 768), (Shape{64, 64, 1, 1, 8}));
  EXPECT_EQ(shape(64, 64, 64), (Shape{64, 64, 1, 1, 8})) << "a K that is too short for split-K";
}

/// Shape-specialised variants with their own tiles exist where a weight is large and they are estimated to be faster.
TEST(CudaHopper, VariantsForFewerRows) {
  auto forms = [](const std::string &text) {
    std::vector<int64_t> bounds;
    for (const ShapeVariant &variant : shapeVariantsOf(text))
      bounds.push_back(variant.bound);
    return bounds;
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(forms(linear(8192, 4096, 4096)), (Bounds{1, 4, 8, 64, 128, 256, 512}));
  EXPECT_EQ(forms(linear(128, 4096, 4096)), (Bounds{1, 4, 8, 64}));
  EXPECT_EQ(forms(linear(8192, 50264, 768)), (Bounds{1, 4, 8})) << "enough tiles in one row of them";
  EXPECT_EQ(forms(linear(8192, 256, 256)), (Bounds{1, 8})) << "a small weight";
  EXPECT_EQ(forms(textOf(matrices("f32", weights, "s0", "4096", "4096"), {{1, 8192}}, "")),
            (Bounds{1, 4, 8, 64, 128, 256}))
      << "of f32, by tiles on CUDA cores";
}

//===- Code --------------------------------------------------------------===//

TEST(CudaHopper, InnerLoopIsCopiesAndWgmma) {
  struct Case {
    std::string element;
    Form form;
    int64_t n, copies;
    std::string instruction;
    uint32_t stages;
  };
  const std::string wgmma = "wgmma.mma_async.sync.aligned.";
  for (const Case &c : {Case{"f16", weights, 4096, 2, "m64n256k16.f32.f16.f16", 4},
                        Case{"bf16", {true, false}, 4096, 6, "m64n256k16.f32.bf16.bf16", 4},
                        Case{"f32", weights, 512, 2, "m64n128k8.f32.tf32.tf32", 6},
                        Case{"f16", weights, 768, 2, "m64n192k16.f32.f16.f16", 5}}) {
    SCOPED_TRACE(c.instruction);
    DeviceKernel kernel(textOf(matrices(c.element, c.form, "s0", number(c.n), "512"), {{8, 4096}}));
    ASSERT_TRUE(kernel.plan().tmaImage);
    const std::string &text = kernel.plan().tmaImage->text;
    EXPECT_NE(text.find(".target sm_90a"), std::string::npos);
    EXPECT_EQ(countOf(text, wgmma), 4U);
    EXPECT_EQ(countOf(text, wgmma + c.instruction), 4U);
    EXPECT_EQ(countOf(text, "cp.async.bulk.tensor.2d"), size_t(c.copies));
    EXPECT_EQ(countOf(text, "mbarrier.init"), 2U * c.stages);
    EXPECT_EQ(countOf(text, "mbarrier.try_wait.parity"), 2U) << "full and empty";
    EXPECT_EQ(countOf(text, "mbarrier.arrive.expect_tx"), 1U);
    EXPECT_EQ(countOf(text, "mbarrier.arrive.shared"), 2U) << "in the loop, and after it";
    EXPECT_EQ(countOf(text, "wgmma.wait_group.sync.aligned 1"), 1U);
    EXPECT_EQ(countOf(text, "wgmma.wait_group.sync.aligned 0"), 1U);
    EXPECT_EQ(countOf(text, "setmaxnreg"), 2U);
    EXPECT_EQ(countOf(text, "bar.sync") + countOf(text, "barrier.sync"), 1U);
    EXPECT_EQ(countOf(text, ".local"), 0U);
    EXPECT_LE(kernel.plan().tmaFunctions.front().sharedBytes, 227U << 10);
  }
}

} // namespace
} // namespace kiln::testing
