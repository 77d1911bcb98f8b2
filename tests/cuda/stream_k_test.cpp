// SPDX-License-Identifier: Apache-2.0
//
// Stream-K GEMMs, in which a fixed number of blocks share the K steps of all tiles: fewer blocks than tiles, as many
// and more, more than there are K steps, with all types and with epilogues.
#include "MmaKernel.h"
#include "compiler/dialect/AffineEval.h"

namespace kiln::testing {
namespace {

/// Returns tiles of 32 x 32, whose K steps `blocks` blocks share.
ScheduleConfig configOf(const std::string &type, int64_t blocks = 108) {
  if (type == "f32")
    return {{"bm", 32}, {"bn", 32}, {"bk", 8}, {"tm", 4}, {"tn", 4}, {"split_k", 1}, {"stream_k", blocks}};
  return {{"mma_bm", 32}, {"mma_bn", 32}, {"mma_bytes", 32},   {"mma_wm", 16},
          {"mma_wn", 16}, {"split_k", 1}, {"stream_k", blocks}};
}

void expectStream(const DeviceKernel &kernel, int64_t blocks, int64_t tile = 32 * 32) {
  const cuda::LaunchPlan &plan = kernel.plan();
  ASSERT_EQ(plan.launches.size(), 2U);
  EXPECT_EQ(mlir::kiln::evaluateExtent(plan.launches[0].blocks, {}), blocks);
  EXPECT_EQ(mlir::kiln::evaluateExtent(plan.launches[1].blocks, {}), (blocks - 1) * tile / 256)
      << "a tile that is shared each";
  EXPECT_GE(plan.scratchBytes, 2 * blocks * tile * 4) << "the end of a tile and the beginning of another";
  EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
}

//===- Shapes ------------------------------------------------------------===//

TEST(CudaStreamK, BlocksAndTiles) {
  // 130 tiles of 3 steps; 108 of 2, one for each block; 117 of one; 6 of 38, shared by 18 blocks each; 4 of 5, so that
  // most blocks have none; one.
  for (auto [m, n, k] : {std::tuple(300, 397, 21), std::tuple(265, 371, 16), std::tuple(257, 401, 5),
                         std::tuple(67, 35, 301), std::tuple(33, 40, 37), std::tuple(9, 3, 2)})
    for (int64_t blocks : {108, 132}) {
      const ScheduleConfig config = configOf("f32", blocks);
      DeviceKernel kernel(matmulKernel({false, true}, number(m), number(n), number(k), 1), &config);
      expectStream(kernel, blocks);
      checkProduct(kernel, "f32", {false, true}, {1, 0, 1}, m, n, k);
    }
}

TEST(CudaStreamK, TypesAndOrders) {
  for (const std::string type : {"f32", "tf32", "f16", "bf16"})
    for (Form form : {Form{false, false}, Form{false, true}, Form{true, false}, Form{true, true}})
      for (auto [m, n, k] : {std::tuple(70, 100, 136), std::tuple(43, 37, 91)}) {
        const ScheduleConfig config = configOf(type);
        DeviceKernel kernel(productKernel(type, form, number(m), number(n), number(k)), &config);
        expectStream(kernel, 108);
        EXPECT_EQ(countOf(textOf(kernel), "mma.sync") > 0, type != "f32");
        for (int64_t offset : {0, type == "f16" || type == "bf16" ? 2 : 4}) {
          kernel.setOffset(offset);
          checkProduct(kernel, type, form, {1, 0, 1}, m, n, k);
        }
      }
}

TEST(CudaStreamK, ExtentsOfTheCall) {
  // Fewer rows, columns and K steps than the schedule is for, down to none.
  for (const std::string type : {"f32", "bf16"}) {
    const ScheduleConfig config = configOf(type);
    DeviceKernel kernel(productKernel(type, {false, false}, "s0", "s2", "s1"), &config);
    expectStream(kernel, 108);
    for (auto [m, k, n] :
         {std::tuple(1, 1, 1), std::tuple(129, 33, 67), std::tuple(33, 200, 9), std::tuple(200, 8, 200)})
      checkProduct(kernel, type, {false, false}, {m, k, n}, m, n, k);
    const Tensor nothing = kernel.run({50, 0, 35}, {Tensor::zeros({50, 0}), Tensor::zeros({0, 35})})[0];
    for (double sum : nothing.values)
      EXPECT_EQ(sum, 0);
  }
}

TEST(CudaStreamK, LargeTiles) {
  // The default tiles, with several pipeline stages in flight.
  const ScheduleConfig fma{{"bm", 128}, {"bn", 128}, {"tm", 8}, {"tn", 8}, {"split_k", 1}, {"stream_k", 108}},
      mma{{"mma_bm", 128}, {"mma_bn", 128}, {"mma_wm", 64}, {"mma_wn", 64}, {"split_k", 1}, {"stream_k", 108}};
  for (const std::string type : {"f32", "f16"}) {
    DeviceKernel kernel(productKernel(type, {false, true}, "199", "150", "1300"), type == "f32" ? &fma : &mma);
    expectStream(kernel, 108, 128 * 128);
    checkProduct(kernel, type, {false, true}, {1, 0, 1}, 199, 150, 1300);
  }
}

//===- Producers and epilogues -------------------------------------------===//

TEST(CudaStreamK, EpilogueOfBothLaunches) {
  // Bias, a maximum and a residual that may be overwritten, for tiles of one block and for shared tiles.
  for (auto [n, k] : {std::pair(397, 21), std::pair(37, 301)}) {
    const ScheduleConfig config = configOf("f32");
    const std::string text = linearKernel(n, k, "", 300);
    DeviceKernel kernel(text, &config);
    expectStream(kernel, 108);
    for (int64_t m : {1, 33, 150, 300})
      kernel.check({m}, randomInputs(text, {m}), 1e-5);
  }
}

TEST(CudaStreamK, GatesOfTransposedResults) {
  // (tanh((x + u) w^T) * gate + residual), transposed.
  KernelText text({{1, 70}});
  const std::string wide = text.type({"s0", "44"}), narrow = text.type({"s0", "90"}), stored = text.type({"44", "s0"});
  Value x = text.argument(narrow), u = text.argument(narrow), w = text.argument(text.type({"44", "90"}));
  Value gate = text.argument(wide), residual = text.argument(stored);
  Value sum =
      text.one("pp", {x, u}, narrow, {"a, b", "a, b", "a, b"}, "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32");
  Value product = text.reduce("ppr", {sum, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd);
  Value y = text.one("pp", {product, gate, residual}, stored, {"a, b", "a, b", "b, a", "b, a"},
                     "%g = math.tanh %x0 : f32\n%s = arith.mulf %g, %x1 : f32\n%t = arith.addf %s, %x2 : f32\n"
                     "linalg.yield %t : f32");
  const std::string finished = text.finish({y}, "kiln.inplace = array<i64: 4>");
  const ScheduleConfig config = configOf("f32");
  DeviceKernel kernel(finished, &config);
  expectStream(kernel, 108);
  for (int64_t m : {1, 33, 70})
    kernel.check({m}, randomInputs(finished, {m}), 1e-5);
}

TEST(CudaStreamK, BatchesAndScratchOfOthers) {
  // Heads whose tiles are numbered consecutively, and whose sums are stored as another op's input: partial sums are
  // stored after that in scratch memory.
  KernelText text({{1, 70}});
  const std::string input = text.type({"s0", "3", "50"}), scores = text.type({"3", "s0", "s0"});
  Value q = text.argument(input), k = text.argument(input);
  Value product = text.reduce("pppr", {q, k}, scores, {"b, a, d", "c, a, d", "a, b, c"}, "0.0 : f32", multiplyAdd);
  Value sums = text.reduce("ppr", {product}, text.type({"3", "s0"}), {"a, b, c", "a, b"}, "0.0 : f32",
                           "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  const std::string finished = text.finish({sums});
  const ScheduleConfig config = configOf("f32");
  DeviceKernel kernel(finished, &config);
  EXPECT_EQ(kernel.plan().launches.size(), 3U);
  EXPECT_EQ(kernel.plan().scratchBytes, int64_t(llvm::alignTo(3 * 70 * 70 * 4, 128)) + 2 * 108 * 32 * 32 * 4);
  for (int64_t m : {1, 33, 70})
    kernel.check({m}, randomInputs(finished, {m}), 1e-4);
}

//===- Order of sums -----------------------------------------------------===//

TEST(CudaStreamK, TheSameBitsInEachRun) {
  // Partial sums of f16 inputs are f32: integers that f16 cannot represent are exact.
  const std::string text = productKernel("f16", {false, true}, "70", "72", "328");
  const ScheduleConfig config = configOf("f16");
  DeviceKernel kernel(text, &config);
  const Tensor a = randomIntegers({70, 328}, 0, 60), b = randomIntegers({72, 328}, 0, 60);
  EXPECT_EQ(kernel.run({1, 0, 1}, {a, b})[0].values, productOf(a, b, {false, true}, "f16").sums.values);
  const Tensor c = randomTensor({70, 328}), d = randomTensor({72, 328});
  EXPECT_EQ(kernel.run({1, 0, 1}, {c, d})[0].values, kernel.run({1, 0, 1}, {c, d})[0].values);
}

TEST(CudaStreamK, HopperLaunchesOneForBoth) {
  const ScheduleConfig config = configOf("f16");
  DeviceKernel kernel(productKernel("f16", {false, true}, "s0", "72", "328"), &config);
  expectStream(kernel, 108);
  kernel.setTma(4);
  checkProduct(kernel, "f16", {false, true}, {70, 0, 1}, 70, 72, 328);
  EXPECT_EQ(kernel.tmaLaunches(), 1);
}

//===- Schedule choice ---------------------------------------------------===//

TEST(CudaStreamK, IsTheTunersChoice) {
  const DeviceKernel kernel(linearKernel(2304, 768, "", 1024)); // 144 tiles: two waves of 108 and of 132 blocks
  EXPECT_EQ(kernel.plan().schedule.at("stream_k"), 0);
}

TEST(CudaStreamK, NotTogetherWithSplitK) {
  const ScheduleConfig config{{"split_k", 2}, {"stream_k", 108}};
  const std::string error = refusal(linearKernel(768, 768, "", 512), &config);
  EXPECT_EQ(error.find("contraction schedule: invalid combination; expected split_k of 1 where stream_k is not 0"), 0U)
      << error;
  const ScheduleConfig other{{"stream_k", 100}};
  EXPECT_EQ(
      refusal(linearKernel(768, 768, "", 512), &other),
      "contraction schedule parameter \"stream_k\": unknown value; expected one of 0, 108, 132, 216, 264, got 100");
}

TEST(CudaStreamK, NoMoreStepsThanNumbersOf32Bits) {
  // The bound of the rows gives 3125000 row tiles with 5 K steps each; that of the columns 100 times as many.
  const ScheduleConfig config = configOf("f32");
  DeviceKernel fits(linearKernel(64, 40, "", 100000000), &config);
  EXPECT_EQ(fits.plan().launches.size(), 2U);
  fits.check({37}, randomInputs(linearKernel(64, 40, "", 100000000), {37}), 1e-5);
  EXPECT_EQ(DeviceKernel(linearKernel(64, 2000, "", 100000000), &config).plan().launches.size(), 1U);
}

} // namespace
} // namespace kiln::testing
