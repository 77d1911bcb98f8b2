// SPDX-License-Identifier: Apache-2.0
//
// Which kernels Halide can generate for GPUs, and that each configuration of the search space gives the same results,
// compared with a loop in f64.
#include "DeviceKernel.h"
#include "KernelText.h"
#include "TransposedKernel.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const std::string copy = "linalg.yield %x0 : f32";

bool hasHalide(const std::string &text) {
  return llvm::any_of(describe(text, "cuda").space, [](auto &parameter) { return parameter.key == "halide"; });
}

std::string pointwise(const std::string &element, const std::string &body) {
  KernelText k({{1, 50}});
  const std::string type = k.type({"s0"}, element);
  Value x = k.argument(type), y = k.argument(type);
  return k.finish({k.one("p", {x, y}, type, {"a", "a", "a"}, body)});
}

TEST(CudaHalide, ServesWhatIsExactThere) {
  EXPECT_TRUE(hasHalide(pointwise("f32", "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32")));
  EXPECT_TRUE(hasHalide(pointwise("i32", "%s = arith.remsi %x0, %x1 : i32\nlinalg.yield %s : i32")));
  EXPECT_FALSE(hasHalide(pointwise("f32", "%s = arith.addf %x0, %x1 {kiln.strict} : f32\nlinalg.yield %s : f32")))
      << "its LLVM would fuse it";
  EXPECT_FALSE(hasHalide(pointwise("f32", "%s = arith.maximumf %x0, %x1 : f32\nlinalg.yield %s : f32")))
      << "NaN would be lost";
  EXPECT_FALSE(hasHalide(pointwise("f32", "%s = math.floor %x0 : f32\nlinalg.yield %s : f32")))
      << "small numbers would be zero";
  EXPECT_FALSE(hasHalide(pointwise("f16", "%s = arith.addf %x0, %x1 : f16\nlinalg.yield %s : f16")));
  EXPECT_FALSE(hasHalide(pointwise("f32", "%c = arith.constant 0x7f800000 : f32\n%s = arith.addf %x0, %c : f32\n"
                                          "linalg.yield %s : f32")))
      << "its constants are finite";
  EXPECT_FALSE(hasHalide(pointwise("f32", "%i = arith.fptosi %x0 : f32 to i32\n%s = arith.sitofp %i : i32 to f32\n"
                                          "linalg.yield %s : f32")));
}

/// Varies one parameter after the other.
TEST(CudaHalide, EveryConfigOfTheSearchSpace) {
  const std::string text = transposedKernel();
  const SearchSpace space = describe(text, "cuda").space;
  for (const TuningParameter &parameter : space)
    for (int64_t value : parameter.values) {
      ScheduleConfig config{{"halide", 1}};
      config[parameter.key] = value;
      if (config["halide"] == 0)
        continue;
      SCOPED_TRACE(toString(config));
      DeviceKernel kernel(text, &config);
      ASSERT_EQ(kernel.plan().launches.size(), 1U);
      EXPECT_EQ(kernel.plan().functions.front().sharedBytes, 0U);
      checkTransposed([&](int64_t m, const std::vector<Tensor> &inputs) { return kernel.run({m}, inputs)[0]; });
    }
  ScheduleConfig idle{{"columns", 128}};
  EXPECT_EQ(refusal(text, &idle),
            "loops schedule: invalid combination; expected no parameter of Halide's without halide, got columns=128 "
            "elements=1 halide=0 threads=256");
}

/// Function names do not depend on what the process has compiled before, and no instruction is an approximation.
TEST(CudaHalide, TextDependsOnTheKernelAlone) {
  const std::string text = pointwise("f32", "%s = math.sqrt %x0 : f32\n%d = arith.divf %s, %x1 : f32\n"
                                            "linalg.yield %d : f32");
  ScheduleConfig config{{"halide", 1}};
  DeviceKernel first(text, &config), second(text, &config);
  const std::string &ptx = first.plan().images.back().text;
  EXPECT_EQ(first.plan().functions.front().name, "step_0");
  EXPECT_EQ(ptx, second.plan().images.back().text);
  for (const char *word : {".approx", ".full", ".ftz"})
    EXPECT_EQ(ptx.find(word), std::string::npos) << word;
}

/// Memory that may be written while it is read is not read through the read-only cache.
TEST(CudaHalide, ReadsCoherentlyInPlace) {
  KernelText k({{1, 50}});
  const std::string type = k.type({"s0"});
  Value x = k.argument(type);
  Value y = k.one("p", {x}, type, {"a", "a"}, "%s = arith.addf %x0, %x0 : f32\nlinalg.yield %s : f32");
  ScheduleConfig config{{"halide", 1}};
  auto readsCached = [&](const std::string &text) {
    return DeviceKernel(text, &config).plan().images.back().text.find("ld.global.nc") != std::string::npos;
  };
  EXPECT_TRUE(readsCached(k.finish({y})));
  EXPECT_FALSE(readsCached(k.finish({y}, "kiln.inplace = array<i64: 0>")));
}

} // namespace
} // namespace kiln::testing
