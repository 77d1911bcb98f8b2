// SPDX-License-Identifier: Apache-2.0
//
// Attention of f32 on tensor cores, where kernels may round GEMM operands to tf32. Results are compared with a loop in
// f64 over the rounded inputs, from which only the rounding of the softmax weights differs, and with a loop over the
// exact inputs, within the error of these roundings.
#include "AttentionMmaKernel.h"
#include "AttentionTf32Kernel.h"
#include "ExpectNan.h"
#include "targets/cuda/cost/CostModel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

//===- Sizes -------------------------------------------------------------===//

TEST(CudaAttentionTf32, Lengths) {
  AttentionCase s = tf32Case();
  s.isCausal = true;
  DeviceKernel kernel(attentionKernel(s));
  expectTf32(kernel);
  for (int64_t t : {1, 2, 7, 8, 9, 16, 17, 33, 64, 65, 130})
    check(kernel, s, t, t);
}

// Head dimensions are padded to multiples of 8, channels to multiples of 16; shared-memory rows of multiples of 32 are
// swizzled. Heads whose width is no multiple of four are copied element by element.
TEST(CudaAttentionTf32, HeadSizes) {
  for (int headDim : {1, 5, 24, 33, 40, 64, 72, 100, 128, 250, 256}) {
    SCOPED_TRACE(headDim);
    AttentionCase s = tf32Case();
    s.headDim = headDim, s.bound = 70;
    DeviceKernel kernel(attentionKernel(s));
    expectTf32(kernel);
    EXPECT_EQ(countOf(textOf(kernel), "cp.async.cg") > 0, headDim % 4 == 0);
    check(kernel, s, 5, 5);
    check(kernel, s, headDim > 128 ? 34 : 66, headDim > 128 ? 34 : 66);
  }
}

TEST(CudaAttentionTf32, MasksAndLengths) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    AttentionCase s = tf32Case();
    s.heads = s.keyHeads = 2, s.headDim = 32, s.bound = 80;
    s.isCausal = kind & 1, s.hasMask = kind & 2, s.hasLengths = kind & 4;
    DeviceKernel kernel(attentionKernel(s));
    expectTf32(kernel);
    for (int64_t t : {1, 67})
      check(kernel, s, t, t);
  }
}

TEST(CudaAttentionTf32, OtherKeys) {
  for (bool isPlanar : {false, true}) {
    AttentionCase s = tf32Case();
    s.isCross = s.isOffset = s.isCausal = s.hasLengths = s.hasMask = true;
    s.heads = s.keyHeads = 2, s.headDim = isPlanar ? 40 : 16;
    s.isPlanar = isPlanar;
    DeviceKernel kernel(attentionKernel(s));
    expectTf32(kernel);
    for (auto [queries, keys] : {std::pair(1, 1), {1, 130}, {7, 64}, {24, 65}, {70, 129}})
      check(kernel, s, queries, keys);
  }
}

// Grouped-query attention: the rows of a block belong to several query heads.
TEST(CudaAttentionTf32, GroupsOfHeads) {
  for (int keyHeads : {1, 2, 3}) {
    AttentionCase s = tf32Case();
    s.heads = 6, s.keyHeads = keyHeads, s.headDim = 20, s.bound = 80;
    s.isCross = s.isCausal = s.isOffset = true;
    s.hasLengths = keyHeads == 3;
    DeviceKernel kernel(attentionKernel(s));
    expectTf32(kernel);
    for (auto [queries, keys] : {std::pair(1, 19), {23, 70}})
      check(kernel, s, queries, keys);
  }
}

TEST(CudaAttentionTf32, UnalignedAddresses) {
  AttentionCase s = tf32Case();
  s.bound = 70;
  DeviceKernel kernel(attentionKernel(s));
  for (int64_t offset : {4, 8}) {
    kernel.setOffset(offset);
    check(kernel, s, 50, 50);
  }
}

TEST(CudaAttentionTf32, SplitKeys) {
  for (int kvSplits : {2, 8}) {
    AttentionCase s = tf32Case();
    s.heads = 2, s.headDim = 32, s.bound = 300;
    s.isCross = s.isCausal = s.isOffset = s.hasLengths = true;
    const ScheduleConfig config{{"split_kv", kvSplits}, {"mma_keys", 16}};
    DeviceKernel kernel(attentionKernel(s), &config);
    expectTf32(kernel);
    for (int64_t keys : {40, 129, 300})
      check(kernel, s, 40, keys);
  }
}

// 16-bit keys and values are representable in tf32. They are loaded by threads, with queries of f32 or of 16 bits.
TEST(CudaAttentionTf32, TypesThatDiffer) {
  for (auto [element, queries, headDim] :
       {std::tuple("f16", "f32", 64), {"bf16", "f16", 40}, {"f32", "bf16", 20}, {"f16", "f32", 20}}) {
    SCOPED_TRACE(std::string(element) + " " + queries);
    AttentionCase s = tf32Case();
    s.element = element, s.queries = queries, s.headDim = headDim;
    s.isCross = s.hasLengths = true;
    s.bound = 70;
    DeviceKernel kernel(attentionKernel(s));
    expectTf32(kernel);
    for (int64_t offset : {0, 4}) {
      kernel.setOffset(offset);
      for (int64_t keys : {1, 65})
        check(kernel, s, 37, keys);
    }
  }
}

//===- Numbers -----------------------------------------------------------===//

// Error bound relative to the exact inputs: a score is off by at most 2^-10 of its products' magnitudes, a weight by
// twice the largest such error of its row plus its own rounding, a value by its own rounding.
TEST(CudaAttentionTf32, RoundingsOfInputs) {
  AttentionCase s = tf32Case();
  s.isCausal = true;
  DeviceKernel kernel(attentionKernel(s));
  const int64_t t = 90;
  const std::vector<Tensor> inputs = attentionInputs(s, t, t);
  double largest = 0;
  for (int64_t batch = 0; batch < attentionBatch; ++batch)
    for (int64_t i = 0; i < t; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < s.headDim; ++d)
          sum += std::abs(inputs[0].at({batch, i, d}) * inputs[1].at({batch, j, d}));
        largest = std::max(largest, sum / std::sqrt(double(s.headDim)));
      }
  const Tensor got = kernel.run({t}, inputs)[0], wanted = expectedAttention(s, t, t, inputs);
  compare(got, wanted, magnitudes(s, t, t, inputs), std::expm1(2 * 2 * roundoff * largest) + 2 * roundoff + ofSums);
  double difference = 0;
  for (size_t i = 0; i < got.values.size(); ++i)
    difference = std::max(difference, std::abs(got.values[i] - wanted.values[i]));
  EXPECT_GT(difference, 1e-4) << "nothing was rounded";
}

// A single key has weight 1, so that the output is the value rounded to tf32: to nearest, ties away from zero.
TEST(CudaAttentionTf32, ValuesAreRounded) {
  AttentionCase s = tf32Case();
  s.isCross = true, s.headDim = 24;
  DeviceKernel kernel(attentionKernel(s));
  std::vector<Tensor> inputs = attentionInputs(s, 33, 1);
  inputs[2].at({0, 0, 0}) = 1 + 0x1p-11, inputs[2].at({0, 0, 1}) = -1 - 0x1p-11, inputs[2].at({0, 0, 2}) = 1 + 0x1p-12;
  inputs[2].at({0, 0, 3}) = 1 + 3 * 0x1p-11;
  const Tensor got = kernel.run({33, 1}, inputs)[0];
  EXPECT_FLOAT_EQ(float(got.at({0, 0, 0, 0})), 1 + 0x1p-10F);
  EXPECT_FLOAT_EQ(float(got.at({0, 0, 0, 1})), -1 - 0x1p-10F);
  EXPECT_FLOAT_EQ(float(got.at({0, 0, 0, 2})), 1);
  EXPECT_FLOAT_EQ(float(got.at({0, 0, 0, 3})), 1 + 0x1p-9F);
  for (int64_t i = 0; i < 33; ++i)
    for (int64_t d = 0; d < s.headDim; ++d)
      EXPECT_FLOAT_EQ(float(got.at({2, i, 0, d})), float(rounded(inputs[2].at({2, 0, d}))));
}

/// Returns the output of the first query of the first batch, with `change` applied to the inputs.
template <class Change> std::vector<double> firstRow(const Change &change) {
  AttentionCase s = tf32Case();
  s.hasMask = s.isCross = true;
  s.mostQueries = 40, s.headDim = 8;
  const ScheduleConfig config{{"mma_keys", 16}};
  DeviceKernel kernel(attentionKernel(s), &config);
  expectTf32(kernel);
  std::vector<Tensor> inputs = attentionInputs(s, 33, 70);
  change(inputs);
  std::vector<double> all = kernel.run({33, 70}, inputs)[0].values;
  all.resize(8);
  return all;
}

TEST(CudaAttentionTf32, NumbersThatAreNone) {
  expectNan(firstRow([](auto &inputs) { inputs[0].at({0, 0, 3}) = NAN; }));
  expectNan(firstRow([](auto &inputs) { inputs[1].at({0, 51, 3}) = NAN; }));
  expectNan(firstRow([](auto &inputs) {
    inputs[1].at({0, 51, 3}) = INFINITY;
    inputs[0].at({0, 0, 3}) = 1, inputs[3].at({0, 51}) = 0;
  }));
  expectNan(firstRow([](auto &inputs) { inputs[3].at({0, 60}) = NAN; }));
  expectNan(firstRow([](auto &inputs) { inputs[3].at({0, 60}) = INFINITY; }));
  // A row all of whose keys are masked out is 0.
  expectZeros(firstRow([](auto &inputs) {
    for (int64_t j = 0; j < 70; ++j)
      inputs[3].at({0, j}) = -INFINITY;
  }));
  // NaN or infinity in a value affects only its channel.
  std::vector<double> row = firstRow([](auto &inputs) { inputs[2].at({0, 33, 5}) = NAN; });
  for (size_t d = 0; d < row.size(); ++d)
    EXPECT_EQ(std::isnan(row[d]), d == 5);
  row = firstRow([](auto &inputs) { inputs[2].at({0, 69, 6}) = -INFINITY; });
  for (size_t d = 0; d < row.size(); ++d)
    EXPECT_EQ(row[d] == -INFINITY, d == 6) << row[d];
  // The only key that counts is not in the first tile.
  double value = 0;
  row = firstRow([&](auto &inputs) {
    for (int64_t j = 0; j < 70; ++j)
      inputs[3].at({0, j}) = j == 69 ? 0 : -INFINITY;
    value = inputs[2].at({0, 69, 2});
  });
  EXPECT_FLOAT_EQ(float(row[2]), float(rounded(value)));
}

// Where no key counts, the result is 0.
TEST(CudaAttentionTf32, NothingCounts) {
  AttentionCase s = tf32Case();
  s.hasLengths = s.isCross = true;
  s.headDim = 16;
  const ScheduleConfig config{{"mma_keys", 16}};
  DeviceKernel kernel(attentionKernel(s), &config);
  std::vector<Tensor> inputs = attentionInputs(s, 70, 130);
  inputs.back().values = {0, 37, 0};
  check(kernel, s, 70, 130, inputs);
}

// Keys beyond the diagonal's tile, and beyond the tile of a sequence's length, are not read: they may be NaN.
TEST(CudaAttentionTf32, SkipsWhatDoesNotCount) {
  for (bool isCausal : {false, true}) {
    AttentionCase s = tf32Case();
    s.headDim = 16, s.bound = 300;
    s.isCross = true, s.isCausal = isCausal, s.hasLengths = !isCausal;
    const ScheduleConfig config{{"mma_keys", 16}};
    DeviceKernel kernel(attentionKernel(s), &config);
    check(kernel, s, 40, 300, attentionInputs(s, 40, 300, isCausal ? INT32_MAX : 96, isCausal ? 48 : 96));
  }
}

// The maximum of each tile is larger, or smaller, than that of the last tile.
TEST(CudaAttentionTf32, ScoresThatGrowAndShrink) {
  for (double step : {0.5, -0.5}) {
    AttentionCase s = tf32Case();
    s.hasMask = true, s.headDim = 8;
    const ScheduleConfig config{{"mma_keys", 16}};
    DeviceKernel kernel(attentionKernel(s), &config);
    std::vector<Tensor> inputs = attentionInputs(s, 100, 100);
    for (int64_t i = 0; i < 100; ++i)
      for (int64_t j = 0; j < 100; ++j)
        inputs[3].at({i, j}) = step * double(j);
    check(kernel, s, 100, 100, inputs);
  }
}

//===- Kernels of kiln ops -----------------------------------------------===//

// kiln.attention scales the queries, and the kernel reads them unscaled. Inputs are multiples of 1/16, which tf32
// represents exactly: only the softmax weights are rounded.
TEST(CudaAttentionTf32, KilnOps) {
  for (MmaCase s : {MmaCase{.headDim = 64, .isCausal = true},
                    {.headDim = 40, .channels = 128, .isCross = true},
                    {.headDim = 33, .channels = 21, .hasMask = true, .hasLengths = true},
                    {.heads = 6, .keyHeads = 2, .headDim = 24, .isCausal = true, .isCross = true}}) {
    s.type = {"f32", ElementType::f32}, s.bound = 70;
    std::string text = kernelOf(s);
    text.insert(text.find("kiln.kernel"), "kiln.tf32, ");
    SCOPED_TRACE(s.headDim);
    DeviceKernel kernel(text);
    expectTf32(kernel);
    for (auto [queries, keys] : {std::pair(1, 1), {50, s.isCross ? 70 : 50}}) {
      std::vector<Tensor> inputs = inputsOf(s, text, queries, keys);
      double largest = 0;
      for (size_t i : {0, 1, 2})
        for (double &value : inputs[i].values)
          value = std::round(value * 16) / 16;
      for (double value : inputs[2].values)
        largest = std::max(largest, std::abs(value));
      const Tensor got = kernel.run({queries, keys}, inputs)[0];
      const verify::SharedTensor wanted = kernel.expected({queries, keys}, inputs)[0];
      for (size_t i = 0; i < got.values.size(); ++i)
        ASSERT_LE(std::abs(got.values[i] - wanted->values[i]), wanted->errors[i] + roundoff * largest) << i;
    }
  }
}

//===- Supported kernels -------------------------------------------------===//

TEST(CudaAttentionTf32, IsAskedFor) {
  AttentionCase s = tf32Case(), exact = s;
  exact.attributes.clear();
  auto usesMma = [](const std::string &text) {
    const DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().strategy, "attention");
    EXPECT_EQ(countOf(textOf(kernel), "cvt.rna.tf32.f32") > 0, countOf(textOf(kernel), "mma.sync") > 0);
    return countOf(textOf(kernel), "mma.sync") > 0;
  };
  EXPECT_FALSE(usesMma(attentionKernel(exact)));
  EXPECT_TRUE(usesMma(attentionKernel(s)));
  s.isCross = true, s.mostQueries = 16;
  EXPECT_FALSE(usesMma(attentionKernel(s))) << "memory bounds few queries";
  s.mostQueries = 17;
  EXPECT_TRUE(usesMma(attentionKernel(s)));
  // 16-bit operands are not rounded.
  s.element = s.queries = "f16";
  EXPECT_EQ(countOf(textOf(DeviceKernel(attentionKernel(s))), ".tf32"), 0U);
}

// The variants for up to 16 rows do not round operands.
TEST(CudaAttentionTf32, VariantsForFewRows) {
  auto bounds = [](int keyHeads, bool isCross, int bound, const std::string &attributes) {
    AttentionCase s = tf32Case();
    s.heads = 8, s.keyHeads = keyHeads, s.isCross = isCross, s.bound = bound, s.attributes = attributes;
    std::vector<int64_t> all;
    for (const ShapeVariant &variant : shapeVariantsOf(attentionKernel(s)))
      all.push_back(variant.bound);
    return all;
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(bounds(8, false, 300, "kiln.tf32"), (Bounds{16, 128}));
  EXPECT_EQ(bounds(2, false, 300, "kiln.tf32"), (Bounds{4, 128}));
  EXPECT_EQ(bounds(8, false, 300, ""), Bounds{128});
  EXPECT_EQ(bounds(8, false, 16, "kiln.tf32"), Bounds());
  EXPECT_EQ(bounds(8, true, 300, "kiln.tf32"), (Bounds{1, 16}));
}

//===- Search space ------------------------------------------------------===//

TEST(CudaAttentionTf32, EndsOfTheSearchSpace) {
  AttentionCase s = tf32Case();
  s.headDim = 40, s.bound = 90;
  s.isCausal = s.hasLengths = true;
  const std::string text = attentionKernel(s);
  for (const ScheduleConfig &config : endsOf(spaceOf(text))) {
    SCOPED_TRACE(toString(config));
    DeviceKernel kernel(text, &config);
    expectTf32(kernel);
    check(kernel, s, 50, 50);
  }
}

TEST(CudaAttentionTf32, RefusesWhatDoesNotFit) {
  AttentionCase s = tf32Case();
  s.headDim = 128;
  const std::string text = attentionKernel(s);
  auto expectRule = [&](const ScheduleConfig &config, const std::string &rule) {
    EXPECT_EQ(refusal(text, &config).find("attention schedule: invalid combination; expected " + rule), 0U)
        << refusal(text, &config);
  };
  expectRule({{"mma_queries", 16}, {"mma_queries_per_warp", 32}}, "32 to 512 threads");
  expectRule({{"mma_queries", 64}, {"mma_keys", 64}}, "99 KiB of shared memory");
  s.headDim = 16;
  const ScheduleConfig config{{"mma_queries_per_warp", 32}, {"mma_queries", 32}, {"mma_keys", 128}};
  EXPECT_EQ(refusal(attentionKernel(s), &config), "") << "as many registers as there are";
}

//===- Code --------------------------------------------------------------===//

// The default configurations of docs/cuda.md, and that the loop has only two barriers per tile, before and after the
// rounding of the tile, in addition to two before the loop and two around the outputs.
TEST(CudaAttentionTf32, Defaults) {
  struct Default {
    int headDim;
    const char *config;
    size_t products, matrices, roundings;
    uint32_t bytes;
    int registers;
    uint32_t threads;
  };
  for (const Default &p :
       {Default{64, "mma_key_stages=2 mma_keys=32 mma_queries=128 mma_queries_per_warp=32 split_kv=1", 128, 32, 128,
                66560, 176, 128},
        Default{128, "mma_key_stages=2 mma_keys=16 mma_queries=64 mma_queries_per_warp=32 split_kv=1", 128, 48, 208,
                66048, 224, 64}}) {
    std::string text =
        kernelOf({.type = {"f32", ElementType::f32}, .heads = 16, .keyHeads = 16, .headDim = p.headDim, .bound = 2048});
    text.insert(text.find("kiln.kernel"), "kiln.tf32, ");
    DeviceKernel kernel(text);
    expectTf32(kernel);
    EXPECT_EQ(toString(kernel.plan().schedule), p.config);
    const std::string &ptx = textOf(kernel);
    EXPECT_EQ(countOf(ptx, "mma.sync"), p.products);
    EXPECT_EQ(countOf(ptx, "ldmatrix"), p.matrices);
    EXPECT_EQ(countOf(ptx, "cvt.rna.tf32.f32"), p.roundings);
    EXPECT_EQ(countOf(ptx, "bar.sync") + countOf(ptx, "barrier.sync"), 6U);
    EXPECT_EQ(kernel.plan().functions[0].threads, p.threads);
    EXPECT_EQ(kernel.plan().functions[0].sharedBytes, p.bytes);
    mlir::MLIRContext context;
    auto module = prepare(context, text);
    auto costs = cuda::costOf(*module->getOps<mlir::func::FuncOp>().begin(), nullptr, {2048, 2048}, cuda::gpuOf(80));
    ASSERT_TRUE(succeeded(costs) && costs->size() == 1);
    EXPECT_EQ(costs->front().registers, p.registers);
    EXPECT_EQ(costs->front().blocksAtOnce, 2);
  }
}

TEST(CudaAttentionTf32, NoBankConflicts) {
  for (int headDim : {64, 128})
    for (int ofWarp : {16, 32}) {
      AttentionCase s = tf32Case();
      s.headDim = headDim, s.bound = 128, s.isCausal = true;
      const ScheduleConfig config{{"mma_queries_per_warp", ofWarp}, {"mma_queries", 64}, {"mma_keys", 16}};
      DeviceKernel kernel(attentionKernel(s), &config);
      check(kernel, s, 100, 100);
      EXPECT_EQ(kernel.bankConflicts(), 0U) << headDim;
    }
}

} // namespace
} // namespace kiln::testing
