// SPDX-License-Identifier: Apache-2.0
//
// Split-K GEMMs, with few tiles and a long K, whose blocks share the K loop: partial sums, and the second launch that
// adds them.
#include "DeviceKernel.h"
#include "ProductKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

TEST(CudaSplitK, Defaults) {
  auto splitOf = [](int64_t n, int64_t k, int rows) {
    return DeviceKernel(linearKernel(n, k, "", rows)).plan().schedule.at("split_k");
  };
  EXPECT_EQ(splitOf(768, 3072, 64), 16) << "48 tiles of 32 x 32 in four parts of 512, and more of few threads";
  EXPECT_EQ(splitOf(768, 3072, 512), 16) << "96 tiles of 64 x 64, of 128 threads";
  EXPECT_EQ(splitOf(1024, 3072, 512), 8) << "128 tiles";
  EXPECT_EQ(splitOf(768, 768, 64), 16) << "parts of 48 at least";
  EXPECT_EQ(splitOf(768, 256, 64), 1) << "a small weight";
  EXPECT_EQ(splitOf(64, 65536, 64), 16);
}

TEST(CudaSplitK, EpilogueOfTheSecondLaunch) {
  for (int64_t parts : {2, 4, 16})
    for (auto [n, k] : {std::pair(37, 301), std::pair(64, 512)}) {
      SCOPED_TRACE(number(parts) + " parts of " + number(n) + " x " + number(k));
      const ScheduleConfig config{{"split_k", parts}};
      const std::string text = linearKernel(n, k, "", 70);
      DeviceKernel kernel(text, &config);
      EXPECT_EQ(kernel.plan().strategy, "contraction");
      ASSERT_EQ(kernel.plan().launches.size(), 2U);
      EXPECT_EQ(kernel.plan().scratchBytes, parts * 70 * n * 4);
      for (int64_t m : {1, 33, 70})
        kernel.check({m}, randomInputs(text, {m}), 1e-5);
    }
}

TEST(CudaSplitK, NoMorePartsThanKHas) {
  // 40 is three stages of 16. If a dynamic K turns out short, most splits are empty.
  const ScheduleConfig config{{"split_k", 16}};
  DeviceKernel fixed(linearKernel(33, 40, "", 40), &config);
  EXPECT_EQ(fixed.plan().scratchBytes, 2 * 40 * 33 * 4);
  const std::string text = matmulKernel({false, false}, "s0", "s2", "s1", 300);
  DeviceKernel kernel(text, &config);
  EXPECT_EQ(kernel.plan().launches.size(), 2U);
  for (auto [m, k, n] : {std::tuple(9, 1, 33), std::tuple(40, 17, 5), std::tuple(65, 300, 40)})
    kernel.check({m, k, n}, randomInputs(text, {m, k, n}), 1e-5);
  const Tensor nothing = kernel.run({5, 0, 3}, {Tensor::zeros({5, 0}), Tensor::zeros({0, 3})})[0];
  for (double sum : nothing.values)
    EXPECT_EQ(sum, 0);
}

TEST(CudaSplitK, NoMorePartsThanMemoryIsFor) {
  // 2048 x 2048 f32 are 16 MiB, and the limit is four times as much.
  const ScheduleConfig config{{"split_k", 16}};
  EXPECT_EQ(DeviceKernel(linearKernel(2048, 4096, "", 2048), &config).plan().scratchBytes, int64_t(64) << 20);
  EXPECT_EQ(DeviceKernel(linearKernel(8192, 4096, "", 2048), &config).plan().launches.size(), 1U);
}

TEST(CudaSplitK, BatchesAndScratchOfOthers) {
  // Heads whose scaled sums are stored as another op's input: partial sums are stored after that in scratch memory.
  KernelText text({{1, 40}});
  const std::string input = text.type({"s0", "3", "200"}), scores = text.type({"3", "s0", "s0"});
  Value q = text.argument(input), k = text.argument(input);
  Value product = text.reduce("pppr", {q, k}, scores, {"b, a, d", "c, a, d", "a, b, c"}, "0.0 : f32", multiplyAdd);
  Value sums = text.reduce("ppr", {product}, text.type({"3", "s0"}), {"a, b, c", "a, b"}, "0.0 : f32",
                           "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  const std::string finished = text.finish({sums});
  const ScheduleConfig config{{"split_k", 4}};
  DeviceKernel kernel(finished, &config);
  EXPECT_EQ(kernel.plan().launches.size(), 3U);
  EXPECT_EQ(kernel.plan().scratchBytes, 19200 + 4 * 3 * 40 * 40 * 4);
  for (int64_t m : {1, 33, 40})
    kernel.check({m}, randomInputs(finished, {m}), 1e-4);
}

TEST(CudaSplitK, TensorCoresInAFixedOrder) {
  // Partial sums of f16 inputs are f32: integers that f16 cannot represent are exact, and random inputs give the same
  // bits in each run.
  KernelText text;
  Value x = text.argument(text.type({"40", "328"}, "f16")), w = text.argument(text.type({"72", "328"}, "f16"));
  Value y = text.reduce("ppr", {x, w}, text.type({"40", "72"}), {"a, c", "b, c", "a, b"}, "0.0 : f32",
                        "%p = arith.extf %x0 : f16 to f32\n%q = arith.extf %x1 : f16 to f32\n"
                        "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  const ScheduleConfig config{{"split_k", 8}};
  DeviceKernel kernel(text.finish({y}), &config);
  EXPECT_EQ(kernel.plan().launches.size(), 2U);
  EXPECT_GT(countOf(textOf(kernel), "mma.sync"), 0U);
  const Tensor a = randomIntegers({40, 328}, 0, 60), b = randomIntegers({72, 328}, 0, 60);
  const Tensor whole = kernel.run({}, {a, b})[0];
  for (int64_t i = 0; i < 40 * 72; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 328; ++k)
      sum += a.at({i / 72, k}) * b.at({i % 72, k});
    ASSERT_EQ(whole.values[i], sum);
  }
  const Tensor c = randomTensor({40, 328}), d = randomTensor({72, 328});
  EXPECT_EQ(kernel.run({}, {c, d})[0].values, kernel.run({}, {c, d})[0].values);
}

} // namespace
} // namespace kiln::testing
