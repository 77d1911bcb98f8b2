// SPDX-License-Identifier: Apache-2.0
//
// Attention of f16 and bf16 on tensor cores, compared with the interpreter in f64 with its error bounds, which allow
// for f32 accumulation and for one rounding of softmax weights and results.
#include "AttentionKernel.h"
#include "AttentionMmaKernel.h"
#include "ExpectNan.h"
#include "ProductKernel.h"
#include "targets/cuda/cost/CostModel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Expects the attention strategy, tensor cores for both GEMMs and no memory for scores.
void expectMma(const DeviceKernel &kernel, const HalfType &type) {
  const cuda::LaunchPlan &plan = kernel.plan();
  EXPECT_EQ(plan.strategy, "attention");
  const int64_t kvSplits = plan.schedule.at("split_kv");
  EXPECT_EQ(plan.launches.size(), kvSplits > 1 ? 2U : 1U);
  EXPECT_EQ(plan.scratchBytes > 0, kvSplits > 1);
  const std::string &ptx = textOf(kernel), name = "." + type.name;
  EXPECT_EQ(ptx.find(".local"), std::string::npos);
  EXPECT_GE(countOf(ptx, "mma.sync.aligned.m16n8k16.row.col.f32" + name + name + ".f32"), 4U);
  EXPECT_GT(countOf(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), 0U);
}

//===- Sizes -------------------------------------------------------------===//

TEST(CudaAttentionMma, Lengths) {
  for (const HalfType &type : types) {
    MmaCase s{.type = type, .heads = 1, .keyHeads = 1, .isCausal = true};
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, type);
    for (int64_t t : {1, 2, 15, 16, 17, 33, 64, 65, 130})
      check(kernel, s, text, t, t);
  }
}

// Heads of 8 and 40 are padded to 16 and 48; those of 100 are copied by threads, since their rows are no multiples of
// 16 bytes.
TEST(CudaAttentionMma, HeadSizes) {
  for (int headDim : {1, 8, 40, 64, 96, 100, 128, 256}) {
    SCOPED_TRACE(headDim);
    MmaCase s{.type = types[headDim % 3 == 1], .heads = 1, .keyHeads = 1, .headDim = headDim, .bound = 70};
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, s.type);
    check(kernel, s, text, 5, 5);
    check(kernel, s, text, headDim > 128 ? 34 : 66, headDim > 128 ? 34 : 66);
  }
}

TEST(CudaAttentionMma, ValuesOfAnotherWidth) {
  for (auto [headDim, channels] : {std::pair(40, 128), {64, 24}}) {
    MmaCase s{.headDim = headDim, .channels = channels, .bound = 70, .isCross = true};
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, s.type);
    check(kernel, s, text, 37, 70);
  }
}

TEST(CudaAttentionMma, MasksAndLengths) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    MmaCase s{.type = types[kind % 2], .headDim = 32, .bound = 80};
    s.isCausal = kind & 1, s.hasMask = kind & 2, s.hasLengths = kind & 4;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, s.type);
    for (int64_t t : {1, 67})
      check(kernel, s, text, t, t);
  }
}

TEST(CudaAttentionMma, OtherKeys) {
  for (bool isCausal : {false, true}) {
    MmaCase s{.type = types[isCausal], .headDim = 64, .isCausal = isCausal, .isCross = true};
    s.hasLengths = !isCausal;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, s.type);
    for (auto [queries, keys] : {std::pair(1, 130), {7, 64}, {70, 129}, {33, 35}})
      check(kernel, s, text, queries, keys);
  }
}

// Grouped-query attention: the rows of a block belong to several query heads.
TEST(CudaAttentionMma, GroupsOfHeads) {
  for (int keyHeads : {1, 2, 3}) {
    MmaCase s{.type = types[keyHeads % 2], .heads = 6, .keyHeads = keyHeads, .headDim = 24, .bound = 80};
    s.isCross = s.isCausal = true;
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text);
    expectMma(kernel, s.type);
    for (auto [queries, keys] : {std::pair(1, 19), {23, 70}})
      check(kernel, s, text, queries, keys);
  }
}

TEST(CudaAttentionMma, UnalignedAddresses) {
  MmaCase s{.headDim = 64, .bound = 70};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  for (int64_t offset : {2, 4, 8}) {
    kernel.setOffset(offset);
    check(kernel, s, text, 50, 50);
  }
}

TEST(CudaAttentionMma, SplitKeys) {
  for (int kvSplits : {2, 8}) {
    MmaCase s{.type = types[kvSplits == 8], .heads = 2, .keyHeads = 1, .headDim = 32, .bound = 300};
    s.isCross = s.isCausal = s.hasLengths = true;
    const ScheduleConfig config{{"split_kv", kvSplits}, {"mma_keys", 16}};
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text, &config);
    expectMma(kernel, s.type);
    for (int64_t keys : {40, 129, 300})
      check(kernel, s, text, 40, keys);
  }
}

//===- Numbers -----------------------------------------------------------===//

/// Returns the output of the first query of the first batch, with `change` applied to the inputs.
template <class Change> std::vector<double> firstRow(const HalfType &type, const Change &change) {
  MmaCase s{.type = type, .heads = 1, .keyHeads = 1, .headDim = 8, .bound = 80, .hasMask = true, .isCross = true};
  const ScheduleConfig config{{"mma_keys", 16}};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text, &config);
  expectMma(kernel, type);
  std::vector<Tensor> inputs = inputsOf(s, text, 33, 70);
  std::fill(inputs[3].values.begin(), inputs[3].values.end(), 0);
  change(inputs);
  std::vector<double> all = kernel.run({33, 70}, inputs)[0].values;
  all.resize(8);
  return all;
}

TEST(CudaAttentionMma, NumbersThatAreNone) {
  for (const HalfType &type : types) {
    SCOPED_TRACE(type.name);
    expectNan(firstRow(type, [](auto &inputs) { inputs[0].at({0, 0, 3}) = NAN; }));
    expectNan(firstRow(type, [](auto &inputs) { inputs[1].at({0, 51, 3}) = NAN; }));
    expectNan(firstRow(type, [](auto &inputs) {
      inputs[1].at({0, 51, 3}) = INFINITY;
      inputs[0].at({0, 0, 3}) = 1;
    }));
    expectNan(firstRow(type, [](auto &inputs) { inputs[3].at({0, 60}) = INFINITY; }));
    // NaN or infinity in a value affects only its channel.
    std::vector<double> row = firstRow(type, [](auto &inputs) { inputs[2].at({0, 33, 5}) = NAN; });
    for (size_t d = 0; d < row.size(); ++d)
      EXPECT_EQ(std::isnan(row[d]), d == 5);
    row = firstRow(type, [](auto &inputs) { inputs[2].at({0, 69, 6}) = -INFINITY; });
    for (size_t d = 0; d < row.size(); ++d)
      EXPECT_EQ(row[d] == -INFINITY, d == 6) << row[d];
    // A key of -infinity has weight 0 if another key counts, and the only key that counts may be outside the first
    // tile.
    double value = 0;
    row = firstRow(type, [&](auto &inputs) {
      for (int64_t j = 0; j < 70; ++j)
        inputs[3].at({0, j}) = j == 69 ? 0 : -INFINITY;
      value = inputs[2].at({0, 69, 2});
    });
    EXPECT_EQ(row[2], value);
  }
}

// Where no key counts, the result is 0.
TEST(CudaAttentionMma, NothingCounts) {
  MmaCase s{.heads = 1, .keyHeads = 1, .headDim = 16, .bound = 80, .hasLengths = true, .isCross = true};
  const std::string text = kernelOf(s);
  DeviceKernel kernel(text);
  expectZerosWhereNothingCounts(kernel, s, text, 35, 70);
}

TEST(CudaAttentionMma, Windows) {
  for (int window : {1, 20, 90}) {
    SCOPED_TRACE(window);
    MmaCase s{.headDim = 16, .bound = 140, .hasLengths = window == 20, .isCross = true};
    s.isCausal = true, s.window = window;
    const std::string text = kernelOf(s);
    const ScheduleConfig config{{"mma_keys", 16}, {"mma_queries", 32}};
    DeviceKernel kernel(text, &config);
    for (auto [queries, keys] : {std::pair(1, 133), {33, 140}, {70, 70}})
      check(kernel, s, text, queries, keys);
  }
}

// Keys beyond the diagonal's tile are not read: they may be NaN.
TEST(CudaAttentionMma, SkipsWhatDoesNotCount) {
  MmaCase s{.heads = 1, .keyHeads = 1, .headDim = 16, .bound = 140, .isCausal = true};
  const ScheduleConfig config{{"mma_keys", 16}, {"mma_queries", 32}};
  DeviceKernel kernel(kernelOf(s), &config);
  std::vector<Tensor> inputs = inputsOf(s, kernelOf(s), 140, 140);
  const Tensor all = kernel.run({140, 140}, inputs)[0];
  for (int input : {1, 2})
    for (int64_t batch : {0, 1})
      for (int64_t key = 64; key < 140; ++key)
        for (int64_t d = 0; d < 16; ++d)
          inputs[size_t(input)].at({batch, key, d}) = NAN;
  const Tensor some = kernel.run({140, 140}, inputs)[0];
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t d = 0; d < 16; ++d)
      EXPECT_EQ(some.at({1, i, 0, d}), all.at({1, i, 0, d}));
}

// The maximum of each tile is larger, or smaller, than that of the last tile.
TEST(CudaAttentionMma, ScoresThatGrowAndShrink) {
  for (double step : {0.5, -0.5}) {
    MmaCase s{.heads = 1, .keyHeads = 1, .headDim = 8, .bound = 100, .hasMask = true};
    const ScheduleConfig config{{"mma_keys", 16}};
    const std::string text = kernelOf(s);
    DeviceKernel kernel(text, &config);
    std::vector<Tensor> inputs = inputsOf(s, text, 100, 100);
    for (int64_t i = 0; i < 100; ++i)
      for (int64_t j = 0; j < 100; ++j)
        inputs[3].at({i, j}) = step * double(j);
    check(kernel, 100, 100, inputs);
  }
}

//===- Supported kernels -------------------------------------------------===//

// Queries that are unscaled, and read as they are in memory; and attention that stays on CUDA cores.
TEST(CudaAttentionMma, WhichKernels) {
  auto usesMma = [](const std::string &text) {
    const DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().strategy, "attention");
    return countOf(textOf(kernel), "mma.sync") > 0;
  };
  AttentionCase s;
  s.element = s.queries = "f16";
  s.hasMask = s.isCausal = true;
  s.headDim = 40;
  DeviceKernel kernel(attentionKernel(s));
  expectMma(kernel, types[0]);
  const std::vector<Tensor> inputs = attentionInputs(s, 70, 70);
  const Tensor got = kernel.run({70}, inputs)[0], wanted = expectedAttention(s, 70, 70, inputs);
  for (size_t i = 0; i < got.values.size(); ++i) // magnitudes are below 5
    ASSERT_NEAR(got.values[i], wanted.values[i], 5 * 0x1p-11);
  s.queries = "f32";
  EXPECT_FALSE(usesMma(attentionKernel(s)));
  s.queries = "bf16";
  EXPECT_FALSE(usesMma(attentionKernel(s)));
  s.queries = "f16", s.mostQueries = 16, s.isCross = true;
  EXPECT_FALSE(usesMma(attentionKernel(s))) << "memory bounds few queries";
}

//===- Search space ------------------------------------------------------===//

TEST(CudaAttentionMma, EndsOfTheSearchSpace) {
  MmaCase s{.heads = 1, .keyHeads = 1, .headDim = 40, .bound = 90, .isCausal = true, .hasLengths = true};
  const std::string text = kernelOf(s);
  for (const ScheduleConfig &config : endsOf(spaceOf(text))) {
    SCOPED_TRACE(toString(config));
    DeviceKernel kernel(text, &config);
    expectMma(kernel, s.type);
    check(kernel, s, text, 50, 50);
  }
}

TEST(CudaAttentionMma, RefusesWhatDoesNotFit) {
  const std::string text = kernelOf({.headDim = 128});
  auto expectRule = [&](const ScheduleConfig &config, const std::string &rule) {
    EXPECT_EQ(refusal(text, &config).find("attention schedule: invalid combination; expected " + rule), 0U)
        << refusal(text, &config);
  };
  expectRule({{"mma_queries", 16}, {"mma_queries_per_warp", 32}}, "32 to 512 threads");
  expectRule({{"mma_queries_per_warp", 16}, {"mma_keys", 128}}, "99 KiB of shared memory");
  expectRule({{"mma_queries_per_warp", 32}, {"mma_keys", 64}}, "255 registers");
}

//===- Code --------------------------------------------------------------===//

// The default configurations of docs/cuda.md, and that the loop has only one barrier per tile, in addition to those
// before the loop and around the outputs.
TEST(CudaAttentionMma, Defaults) {
  for (auto [headDim, config, products, loads, bytes] :
       {std::tuple(64, "mma_key_stages=2 mma_keys=64 mma_queries=128 mma_queries_per_warp=32 split_kv=1", 128, 40,
                   49152),
        std::tuple(128, "mma_key_stages=2 mma_keys=32 mma_queries=128 mma_queries_per_warp=32 split_kv=1", 128, 48,
                   70656)}) {
    const std::string text = kernelOf({.heads = 16, .keyHeads = 16, .headDim = headDim, .bound = 2048});
    DeviceKernel kernel(text);
    expectMma(kernel, types[0]);
    EXPECT_TRUE(llvm::StringRef(toString(kernel.plan().schedule)).starts_with(config))
        << toString(kernel.plan().schedule);
    EXPECT_EQ(countOf(textOf(kernel), "mma.sync"), size_t(products));
    EXPECT_EQ(countOf(textOf(kernel), "ldmatrix"), size_t(loads));
    EXPECT_EQ(countOf(textOf(kernel), "bar.sync") + countOf(textOf(kernel), "barrier.sync"), 4U);
    EXPECT_EQ(kernel.plan().functions[0].threads, 128U);
    EXPECT_EQ(kernel.plan().functions[0].sharedBytes, uint32_t(bytes));
    mlir::MLIRContext context;
    auto module = prepare(context, text);
    auto costs = cuda::costOf(*module->getOps<mlir::func::FuncOp>().begin(), nullptr, {2048, 2048}, cuda::gpuOf(80));
    ASSERT_TRUE(succeeded(costs) && costs->size() == 1);
    EXPECT_EQ(costs->front().blocks, 2 * 16 * 16);
    EXPECT_EQ(costs->front().registers, headDim == 64 ? 208 : 240);
    EXPECT_EQ(costs->front().blocksAtOnce, 2);
    EXPECT_EQ(costs->front().bound, cuda::Bound::Operations) << "at the rate of tensor cores";
  }
}

TEST(CudaAttentionMma, NoBankConflicts) {
  for (int headDim : {64, 128})
    for (int ofWarp : {16, 32}) {
      MmaCase s{.heads = 1, .keyHeads = 1, .headDim = headDim, .bound = 128, .isCausal = true};
      const ScheduleConfig config{{"mma_queries_per_warp", ofWarp}, {"mma_queries", 64}, {"mma_keys", 32}};
      const std::string text = kernelOf(s);
      DeviceKernel kernel(text, &config);
      check(kernel, s, text, 100, 100);
      EXPECT_EQ(kernel.bankConflicts(), 0U) << headDim;
    }
}

} // namespace
} // namespace kiln::testing
