// SPDX-License-Identifier: Apache-2.0
//
// Compares the cost model with hand-counted numbers, and checks that a GPU's limits exclude configurations that exceed
// them.
#include "Prepare.h"
#include "ProductKernel.h"
#include "compiler/schedule/SearchSpace.h"
#include "targets/cuda/Compile.h"
#include "targets/cuda/cost/CostModel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using cuda::Bound;
using cuda::LaunchCost;

class CudaCost : public ::testing::Test {
protected:
  mlir::func::FuncOp kernelOf(const std::string &text) {
    modules.push_back(prepare(context, text));
    return *modules.back()->getOps<mlir::func::FuncOp>().begin();
  }
  std::vector<LaunchCost> cost(const std::string &text, const std::vector<int64_t> &extents,
                               const ScheduleConfig &config = {}, int64_t capability = 80) {
    auto costs = cuda::costOf(kernelOf(text), &config, extents, cuda::gpuOf(capability));
    EXPECT_TRUE(succeeded(costs));
    return succeeded(costs) ? *costs : std::vector<LaunchCost>();
  }
  /// Returns which of the limits a configuration exceeds.
  std::vector<bool> broken(const std::string &text, const ScheduleConfig &config, int64_t capability) {
    mlir::func::FuncOp kernel = kernelOf(text);
    const Schedulable schedulable = cuda::createKernelCompiler("", "")->describe(kernel);
    std::string error;
    auto resolved = resolve(schedulable.space, &config, error);
    EXPECT_TRUE(resolved) << error;
    std::vector<bool> result;
    for (const TuningRule &rule : cuda::limitsOf(kernel, capability))
      result.push_back(!rule.holds(*resolved));
    return result;
  }

  mlir::MLIRContext context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

const Form plain{false, true};

// 1024 x 768 x 512 in tiles of 128 x 128: 8 x 6 blocks of 256 threads, each read and write counted once.
TEST_F(CudaCost, Product) {
  const auto costs = cost(matmulKernel(plain, "1024", "768", "512", 1), {1, 0, 1},
                          {{"bm", 128}, {"bn", 128}, {"bk", 16}, {"tm", 8}, {"tn", 8}, {"stages", 3}, {"split_k", 1}});
  ASSERT_EQ(costs.size(), 1u);
  const LaunchCost &c = costs[0];
  EXPECT_EQ(c.strategy, "contraction");
  EXPECT_EQ(c.blocks, 48);
  EXPECT_EQ(c.threads, 256);
  EXPECT_EQ(c.operations, 2.0 * 1024 * 768 * 512);
  EXPECT_EQ(c.bytes, 4.0 * (1024 * 512 + 768 * 512 + 1024 * 768));
  EXPECT_EQ(c.sharedBytes, 128 * 136 * 4);
  // 68 KiB of shared memory allow two blocks; 184 registers allow one.
  EXPECT_EQ(c.registers, 184);
  EXPECT_EQ(c.blocksAtOnce, 1);
  EXPECT_DOUBLE_EQ(c.occupancy, 256.0 / 2048);
  EXPECT_EQ(c.bound, Bound::Operations);
  // 48 blocks keep 48 of 108 multiprocessors busy.
  EXPECT_DOUBLE_EQ(c.seconds, 1024.0 * 768 * 512 / (64 * 1.41e9 * 48));
}

// Threads with 4 x 4 accumulators read two bytes of shared memory per multiply-add, which exceeds 128 bytes per cycle
// for 128 lanes.
TEST_F(CudaCost, SharedMemoryBounds) {
  const std::string text = matmulKernel(plain, "2048", "2048", "2048", 1);
  const ScheduleConfig small{{"bm", 64}, {"bn", 64}, {"tm", 4}, {"tn", 4}}, large{{"tm", 8}, {"tn", 8}};
  EXPECT_EQ(cost(text, {1, 0, 1}, small, 90)[0].bound, Bound::SharedMemory);
  EXPECT_EQ(cost(text, {1, 0, 1}, large, 90)[0].bound, Bound::Operations);
}

TEST_F(CudaCost, SkinnyGemmsAreBoundByBytes) {
  const auto costs = cost(matmulKernel(plain, "1", "4096", "4096", 1), {1, 0, 1});
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].strategy, "skinny_gemm");
  EXPECT_EQ(costs[0].bound, Bound::Bytes);
  EXPECT_EQ(costs[0].bytes, 4.0 * (4096 + 4096.0 * 4096 + 4096));
}

/// exp(x) / sum of exp(x) of each row of s0 x 512.
std::string softmaxLike() {
  KernelText text({{1, 4096}});
  const std::string rows = text.type({"s0", "512"}), row = text.type({"s0"});
  Value x = text.argument(rows);
  Value sum =
      text.reduce("pr", {x}, row, {"a, b", "a"}, "0.0 : f32", "%s = arith.addf %x0, %y0 : f32\nlinalg.yield %s : f32");
  return text.finish(
      {text.one("pp", {x, sum}, rows, {"a, b", "a", "a, b"}, "%s = arith.divf %x0, %x1 : f32\nlinalg.yield %s : f32")});
}

// One launch reads and writes the rows once: the part of a row that it keeps on chip is no traffic.
TEST_F(CudaCost, RowsMoveWhatTheyReadAndStore) {
  const auto costs = cost(softmaxLike(), {4096});
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].strategy, "rows");
  EXPECT_EQ(costs[0].bytes, 2.0 * 4096 * 512 * 4);
  EXPECT_EQ(costs[0].operations, 2.0 * 4096 * 512);
  EXPECT_EQ(costs[0].bound, Bound::Bytes);
  EXPECT_EQ(cost(softmaxLike(), {1})[0].bound, Bound::Launch);
  const std::string text = cuda::toString(costs, cuda::gpuOf(80));
  EXPECT_NE(text.find("bound by bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("(computed, not measured)"), std::string::npos) << text;
}

// Each element is added once, not once for each later element.
TEST_F(CudaCost, RunningSumsAddEachElementOnce) {
  const std::string x = KernelText({{1, 4096}}).type({"s0", "1024"});
  const auto costs = cost("func.func private @f(%s0: index, %x: " + x + ") -> " + x +
                              " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 4096>} {\n  %0 = kiln.cumsum %x "
                              "axis = 1 : " +
                              x + "\n  return %0 : " + x + "\n}\n",
                          {4096});
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].strategy, "running_sum");
  EXPECT_EQ(costs[0].bytes, 2.0 * 4096 * 1024 * 4);
  EXPECT_EQ(costs[0].operations, 2.0 * 4096 * 1024) << "a selection and an addition";
  EXPECT_EQ(costs[0].bound, Bound::Bytes);
}

// 512 threads with 136 registers each exceed the registers of a block.
TEST_F(CudaCost, LimitsLeaveOutWhatHasNoRoom) {
  const std::string text = matmulKernel(plain, "512", "512", "512", 1);
  const ScheduleConfig wide{{"bm", 128}, {"bn", 128}, {"bk", 32}, {"tm", 8}, {"tn", 4}, {"stages", 2}};
  EXPECT_EQ(broken(text, wide, 80), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(broken(text, {}, 80), (std::vector<bool>{false, false, false}));
  // 80 KiB of pipeline stages exceed the shared memory of a GPU before 8.0.
  EXPECT_EQ(broken(text, {{"bm", 128}, {"bn", 128}, {"bk", 16}, {"tm", 8}, {"tn", 8}, {"stages", 4}}, 75),
            (std::vector<bool>{false, false, true}));
  EXPECT_EQ(cuda::mostSharedBytes(86), 99 << 10);
  EXPECT_EQ(cuda::mostSharedBytes(90), 227 << 10);
  // Rows: 16 rows of 32 threads fit, so do 1024 threads, and no configuration has more.
  EXPECT_EQ(broken(softmaxLike(), {{"rows_threads", 1024}, {"rows_per_block", 1}}, 80),
            (std::vector<bool>{false, false, false}));
}

// Which variant of a GEMM is launched depends on the GPU, and with a dynamic pitch also on the call.
TEST_F(CudaCost, ParametersWithoutEffect) {
  const std::vector<std::string> plainKeys{"mma_bm", "mma_bn", "mma_bytes", "mma_stages",
                                           "mma_wm", "mma_wn", "split_k",   "stream_k"},
      tmaKeys{"wgmma_bm", "wgmma_bn", "wgmma_cluster", "wgmma_groups", "wgmma_raster", "wgmma_split", "wgmma_stages"};
  auto product = [](const std::string &kExtent, const std::string &attributes) {
    KernelText text({{1, 4096}, {8, 4096}});
    Value x = text.argument(text.type({"s0", kExtent})), w = text.argument(text.type({"768", kExtent}));
    return text.finish(
        {text.reduce("ppr", {x, w}, text.type({"s0", "768"}), {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd)},
        attributes);
  };
  const std::string known = product("512", "kiln.tf32"), open = product("s1", "kiln.tf32"), exact = product("512", "");
  for (int64_t capability : {80, 89, 120}) {
    EXPECT_EQ(cuda::idleParameters(kernelOf(known), capability), tmaKeys);
    EXPECT_EQ(cuda::idleParameters(kernelOf(open), capability), tmaKeys);
  }
  EXPECT_EQ(cuda::idleParameters(kernelOf(known), 90), plainKeys);
  EXPECT_EQ(cuda::idleParameters(kernelOf(open), 90), std::vector<std::string>());
  for (int64_t capability : {80, 90})
    EXPECT_EQ(cuda::idleParameters(kernelOf(exact), capability), std::vector<std::string>());
  EXPECT_EQ(cuda::multiplyRate(kernelOf(exact), 90), 1);
  EXPECT_EQ(cuda::multiplyRate(kernelOf(known), 90), 8) << "1024 of tf32 and 128 of f32";
  // The TMA variant's tiles fit on every GPU that supports it.
  EXPECT_EQ(broken(known, {{"wgmma_bn", 256}, {"wgmma_stages", 4}}, 90), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(broken(known, {{"wgmma_bn", 256}, {"wgmma_stages", 4}}, 80), (std::vector<bool>{false, false, false}));
}

} // namespace
} // namespace kiln::testing
