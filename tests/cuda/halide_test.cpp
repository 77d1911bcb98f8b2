// SPDX-License-Identifier: Apache-2.0
//
// Which kernels Halide makes for GPUs, and that each point of its search space gives the same: against a loop in f64.
#include "DeviceKernel.h"
#include "KernelText.h"
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

/// y[j, i, c] = x[i, c, j] * w[c] + ids[i] by some points of the search space, on odd sizes.
TEST(CudaHalide, EveryPointOfTheSearchSpace) {
  KernelText k({{0, 60}});
  Value x = k.argument(k.type({"s0", "35", "3"})), w = k.argument(k.type({"35"})),
        ids = k.argument(k.type({"s0"}, "i32"));
  std::string text = k.finish({k.one("ppp", {x, w, ids}, k.type({"3", "s0", "35"}), {"b, c, a", "c", "b", "a, b, c"},
                                     "%f = arith.sitofp %x2 : i32 to f32\n%s = arith.mulf %x0, %x1 : f32\n"
                                     "%t = arith.addf %s, %f : f32\nlinalg.yield %t : f32")});
  const SearchSpace space = describe(text, "cuda").space;
  for (const TuningParameter &parameter : space)
    for (int64_t value : parameter.values) {
      SchedulePoint point{{"halide", 1}};
      point[parameter.key] = value;
      if (point["halide"] == 0)
        continue;
      SCOPED_TRACE(toString(point));
      DeviceKernel kernel(text, &point);
      ASSERT_EQ(kernel.plan().launches.size(), 1U);
      EXPECT_EQ(kernel.plan().functions.front().sharedBytes, 0U);
      for (int64_t m : {0, 1, 37}) {
        Tensor a = randomTensor({m, 35, 3}), b = randomTensor({35}), c = randomIntegers({m}, -100, 100);
        Tensor wanted = Tensor::zeros({3, m, 35});
        for (int64_t j = 0; j < 3; ++j)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t n = 0; n < 35; ++n)
              wanted.at({j, i, n}) = a.at({i, n, j}) * b.at({n}) + c.at({i});
        expectClose(kernel.run({m}, {a, b, c})[0], wanted, 1e-5);
      }
    }
  SchedulePoint idle{{"columns", 128}};
  EXPECT_EQ(refusal(text, &idle), "loops schedule requires no parameter of Halide's without halide, got columns=128 "
                                  "elements=1 halide=0 threads=256");
}

/// Functions have the same names whatever the process has compiled before, and no instruction is an approximation.
TEST(CudaHalide, TextDependsOnTheKernelAlone) {
  const std::string text = pointwise("f32", "%s = math.sqrt %x0 : f32\n%d = arith.divf %s, %x1 : f32\n"
                                            "linalg.yield %d : f32");
  SchedulePoint point{{"halide", 1}};
  DeviceKernel first(text, &point), second(text, &point);
  const std::string &ptx = first.plan().images.front().text;
  EXPECT_EQ(first.plan().functions.front().name, "step_0");
  EXPECT_EQ(ptx, second.plan().images.front().text);
  for (const char *word : {".approx", ".full", ".ftz"})
    EXPECT_EQ(ptx.find(word), std::string::npos) << word;
}

/// What may be written while it is read does not go through the read-only cache.
TEST(CudaHalide, ReadsCoherentlyInPlace) {
  KernelText k({{1, 50}});
  const std::string type = k.type({"s0"});
  Value x = k.argument(type);
  Value y = k.one("p", {x}, type, {"a", "a"}, "%s = arith.addf %x0, %x0 : f32\nlinalg.yield %s : f32");
  SchedulePoint point{{"halide", 1}};
  auto readsCached = [&](const std::string &text) {
    return DeviceKernel(text, &point).plan().images.front().text.find("ld.global.nc") != std::string::npos;
  };
  EXPECT_TRUE(readsCached(k.finish({y})));
  EXPECT_FALSE(readsCached(k.finish({y}, "kiln.inplace = array<i64: 0>")));
}

} // namespace
} // namespace kiln::testing
