// SPDX-License-Identifier: Apache-2.0
//
// Kernels with reductions: rows, contractions with an epilogue, convolutions, attention, in odd sizes; and the memory
// of results while inputs are still read.
#include "DeviceKernel.h"
#include "KernelText.h"
#include "LinearKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Returns an f32 type whose first dimension is s0: rows("7, 5") has s0 x 7 x 5 elements.
std::string rows(const std::string &others) {
  std::string shape = others;
  for (size_t at; (at = shape.find(", ")) != std::string::npos;)
    shape.replace(at, 2, "x");
  return "tensor<?x" + shape + "xf32, affine_map<()[s0] -> (s0, " + others + ")>>";
}

/// Returns a kernel of kiln ops. `arguments` are "%x: type, ..".
std::string kernelOf(const std::string &arguments, const std::string &results, int bound, const std::string &body) {
  return "func.func private @f(%s0: index, " + arguments + ") -> (" + results +
         ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, " + number(bound) + ">} {\n" + body + "\n}\n";
}

TEST(CudaReduction, Softmax) {
  for (std::string axis : {"0", "1", "2"}) {
    SCOPED_TRACE("axis " + axis);
    const std::string x = rows("7, 33");
    std::string text =
        kernelOf("%x: " + x, x, 20, "  %0 = kiln.softmax %x axis = " + axis + " : " + x + "\n  return %0 : " + x);
    DeviceKernel kernel(text);
    for (int64_t m : {1, 19})
      kernel.check({m}, randomInputs(text, {m}));
  }
}

TEST(CudaReduction, ResidualAndLayerNorm) {
  const std::string x = rows("67"), w = "tensor<67xf32>";
  std::string text = kernelOf("%x: " + x + ", %y: " + x + ", %w: " + w + ", %b: " + w, x + ", " + x, 40,
                              "  %0 = kiln.add %x, %y : (" + x + ", " + x + ") -> " + x +
                                  "\n  %1 = kiln.layer_norm %0, %w, %b epsilon = 1.0e-5 : (" + x + ", " + w + ", " + w +
                                  ") -> " + x + "\n  return %0, %1 : " + x + ", " + x);
  DeviceKernel kernel(text);
  for (int64_t m : {1, 37})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaReduction, LinearWithEpilogue) {
  for (auto [n, k] : {std::pair(53, 29), std::pair(1, 64), std::pair(96, 1)}) {
    SCOPED_TRACE(number(n) + " x " + number(k));
    std::string text = linearKernel(n, k, "", 40);
    DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().launches.size(), 1U) << "the epilogue is part of it";
    EXPECT_EQ(kernel.plan().scratchBytes, 0);
    for (int64_t m : {1, 33})
      kernel.check({m}, randomInputs(text, {m}), 1e-5);
  }
}

TEST(CudaReduction, GeluOfALinearOp) {
  const std::string x = rows("31"), y = rows("45");
  std::string text = kernelOf("%x: " + x + ", %w: tensor<45x31xf32>, %b: tensor<45xf32>", y, 30,
                              "  %0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x +
                                  ", tensor<45x31xf32>, tensor<45xf32>) -> " + y + "\n  %1 = kiln.gelu %0 : " + y +
                                  "\n  return %1 : " + y);
  DeviceKernel kernel(text);
  for (int64_t m : {1, 29})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaReduction, Conv2d) {
  struct Case {
    int stride, padding, dilation, height, width;
  };
  for (Case c : {Case{1, 1, 1, 9, 7}, Case{2, 1, 1, 5, 4}, Case{1, 0, 2, 5, 3}}) {
    SCOPED_TRACE("stride " + number(c.stride) + " padding " + number(c.padding));
    const std::string x = rows("9, 7, 5"), y = rows(number(c.height) + ", " + number(c.width) + ", 11");
    auto pair = [](int n) { return "[" + number(n) + ", " + number(n) + "]"; };
    std::string text =
        kernelOf("%x: " + x + ", %w: tensor<11x5x3x3xf32>, %b: tensor<11xf32>, %r: " + y, y, 3,
                 "  %0 = kiln.conv2d %x, %w, %b stride = " + pair(c.stride) + " padding = " + pair(c.padding) +
                     " dilation = " + pair(c.dilation) + " groups = 1 : (" + x +
                     ", tensor<11x5x3x3xf32>, tensor<11xf32>) -> " + y + "\n  %1 = kiln.relu %0 : " + y +
                     "\n  %2 = kiln.add %1, %r : (" + y + ", " + y + ") -> " + y + "\n  return %2 : " + y);
    DeviceKernel kernel(text);
    for (int64_t m : {1, 3})
      kernel.check({m}, randomInputs(text, {m}));
  }
}

TEST(CudaReduction, CausalAttentionWithLengths) {
  // Three query heads share one key and value head; each sequence has its own length, which may be any number.
  const std::string q = "tensor<2x?x24xf32, affine_map<()[s0] -> (2, s0, 24)>>";
  const std::string kv = "tensor<2x?x8xf32, affine_map<()[s0] -> (2, s0, 8)>>";
  std::string text =
      kernelOf("%q: " + q + ", %k: " + kv + ", %v: " + kv + ", %n: tensor<2xi32>", q, 40,
               "  %0 = kiln.attention %q, %k, %v lengths %n heads = 3 key_value_heads = 1 scale = 0.25 causal : (" + q +
                   ", " + kv + ", " + kv + ", tensor<2xi32>) -> " + q + "\n  return %0 : " + q);
  DeviceKernel kernel(text);
  for (int64_t m : {1, 5, 37})
    kernel.check({m}, randomInputs(text, {m}, 1, int(m) + 1));
  std::vector<Tensor> wild = randomInputs(text, {5});
  wild[3].values = {-2147483648.0, 2147483647.0};
  const Tensor result = kernel.run({5}, wild)[0];
  for (double value : result.values)
    EXPECT_TRUE(std::isfinite(value));
}

TEST(CudaReduction, MaximumAndItsPlaceAreOneReduction) {
  KernelText k({{1, 30}});
  Value x = k.argument(k.type({"s0", "21"}));
  Value least = k.fill(k.constant("0xff800000 : f32"), k.type({"s0"})),
        none = k.fill(k.constant("-1 : i32"), k.type({"s0"}, "i32"));
  auto best = k.generic("pr", {x}, {least.type, none.type}, {"a, b", "a", "a"},
                        "%i = linalg.index 1 : index\n%n = arith.index_cast %i : index to i32\n"
                        "%c = arith.cmpf ogt, %x0, %y0 : f32\n%v = arith.select %c, %x0, %y0 : f32\n"
                        "%p = arith.select %c, %n, %y1 : i32\nlinalg.yield %v, %p : f32, i32",
                        {least, none});
  std::string text = k.finish(best);
  DeviceKernel kernel(text);
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  for (int64_t m : {1, 29})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaReduction, AtTheRootOfAKernel) {
  // y = x * max(x over everything), which may overwrite x.
  KernelText k({{1, 90}});
  std::string type = k.type({"s0", "21"});
  Value x = k.argument(type);
  Value top = k.reduce("rr", {x}, "tensor<f32>", {"a, b", ""}, "0xff800000 : f32",
                       "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value y = k.one("pp", {x, top}, type, {"a, b", "", "a, b"}, "%p = arith.mulf %x0, %x1 : f32\nlinalg.yield %p : f32");
  std::string text = k.finish({y}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel(text);
  for (int64_t m : {1, 90})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST(CudaReduction, WithoutAnythingToReduceItIsTheInitialValue) {
  KernelText k({{1, 5}, {0, 5}});
  Value x = k.argument(k.type({"s0", "s1"}));
  Value sum = k.reduce("pr", {x}, k.type({"s0"}), {"a, b", "a"}, "2.5 : f32",
                       "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  DeviceKernel kernel(k.finish({sum}));
  EXPECT_EQ(kernel.run({4, 0}, {Tensor::zeros({4, 0})})[0].values, std::vector<double>(4, 2.5));
}

TEST(CudaReduction, IsNotDoneAgainForEachUse) {
  // The mean of a row is cheap once its sum is known, and each element of the row uses it.
  KernelText k({{1, 30}});
  std::string wide = k.type({"s0", "21"}), column = k.type({"s0"});
  Value x = k.argument(wide);
  Value sum =
      k.reduce("pr", {x}, column, {"a, b", "a"}, "0.0 : f32", "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value mean = k.one("p", {sum}, column, {"a", "a"},
                     "%n = arith.constant 21.0 : f32\n%m = arith.mulf %x0, %n : f32\nlinalg.yield %m : f32");
  Value y =
      k.one("pp", {x, mean}, wide, {"a, b", "a", "a, b"}, "%s = arith.subf %x0, %x1 : f32\nlinalg.yield %s : f32");
  // It is not fused into the loop of another reduction either, though each row is read once.
  Value total = k.reduce("r", {mean}, "tensor<f32>", {"a", ""}, "0.0 : f32",
                         "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  std::string first = k.finish({y}), second = k.finish({total});
  for (auto [text, launches] : {std::pair(first, 1U), std::pair(second, 2U)}) {
    DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().launches.size(), launches);
    kernel.check({29}, randomInputs(text, {29}), 1e-5);
  }
}

//===- Memory of results -------------------------------------------------===//

TEST(CudaPlacement, AnArgumentIsReadBeforeAResultTakesItsMemory) {
  // The first result must not overwrite memory from which the second op still reads other rows, whatever kiln.inplace
  // says.
  KernelText k({{2, 30}});
  std::string type = k.type({"s0", "6"});
  Value x = k.argument(type);
  Value doubled = k.one("pp", {x}, type, {"a, b", "a, b"}, "%s = arith.addf %x0, %x0 : f32\nlinalg.yield %s : f32");
  Value mixed = k.one("pp", {x, doubled}, type, {"a, 5 - b", "a, b", "a, b"},
                      "%s = arith.subf %x0, %x1 : f32\nlinalg.yield %s : f32");
  std::string text = k.finish({doubled, mixed}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel(text);
  EXPECT_GT(kernel.plan().scratchBytes, 0);
  kernel.check({29}, randomInputs(text, {29}));
}

TEST(CudaPlacement, ReadsThroughWhatIsNotStoredCount) {
  // The reversed row is fused into its use: a thread's store would change what another thread reads.
  KernelText k({{2, 30}});
  std::string type = k.type({"s0", "6"});
  Value x = k.argument(type);
  Value reversed = k.one("pp", {x}, type, {"a, 5 - b", "a, b"}, "%s = arith.negf %x0 : f32\nlinalg.yield %s : f32");
  Value back = k.one("pp", {reversed}, type, {"a, 5 - b", "a, b"}, "%s = arith.negf %x0 : f32\nlinalg.yield %s : f32");
  Value sum = k.one("pp", {reversed, x}, type, {"a, b", "a, b", "a, b"},
                    "%s = arith.subf %x0, %x1 : f32\nlinalg.yield %s : f32");
  std::string apart = k.finish({sum}, "kiln.inplace = array<i64: 0>"),
              whole = k.finish({back}, "kiln.inplace = array<i64: 0>");
  DeviceKernel first(apart), second(whole);
  EXPECT_EQ(first.plan().launches.size(), 2U) << "it goes through scratch memory";
  first.check({29}, randomInputs(apart, {29}));
  EXPECT_EQ(second.plan().launches.size(), 1U) << "reversed twice each thread reads its own element";
  second.check({29}, randomInputs(whole, {29}));
}

TEST(CudaPlacement, SeveralResultsAndScratchThatIsUsedAgain) {
  // A chain of row sums: those that are no longer read release their memory.
  KernelText k({{1, 64}});
  std::string type = k.type({"s0", "64"}), column = k.type({"s0"});
  Value x = k.argument(type), current = x;
  for (int i = 0; i < 4; ++i) {
    Value sum = k.reduce("pr", {current}, column, {"a, b", "a"}, "0.0 : f32",
                         "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
    current = k.one("pp", {current, sum}, type, {"a, b", "a", "a, b"},
                    "%n = arith.constant 64.0 : f32\n%m = arith.divf %x1, %n : f32\n%d = arith.subf %x0, %m : f32\n"
                    "%e = math.tanh %d : f32\nlinalg.yield %e : f32");
  }
  std::string text = k.finish({current}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel(text);
  const int64_t wide = 64 * 64 * 4, narrow = 64 * 4;
  EXPECT_LE(kernel.plan().scratchBytes, 2 * wide + 2 * narrow);
  for (int64_t m : {1, 63})
    kernel.check({m}, randomInputs(text, {m}), 1e-5);
}

TEST(CudaKernel, RefusesWhatItHasNoCodeFor) {
  EXPECT_EQ(refusal(linearKernel(96, 64, "#kiln.tiled<0, 16>")),
            "target cuda: unsupported layout of a weight; expected a dense one, got #kiln.tiled<0, 16>");
  KernelText wide({{1, 5}});
  Value d = wide.argument(wide.type({"s0"}, "f64"));
  EXPECT_EQ(refusal(wide.finish({wide.one("p", {d}, d.type, {"a", "a"}, "linalg.yield %x0 : f64")})),
            "the cuda target has no tensor of type '" + d.type + "'");
  KernelText k({{1, 5}});
  Value x = k.argument(k.type({"s0"}));
  Value y = k.one("p", {x}, x.type, {"a", "a"}, "%s = math.atan %x0 : f32\nlinalg.yield %s : f32");
  EXPECT_EQ(refusal(k.finish({y})), "the cuda target has no translation for op 'math.atan'");
  KernelText returned({{1, 5}});
  Value same = returned.argument(returned.type({"s0"}));
  EXPECT_EQ(refusal(returned.finish({same}, "kiln.inplace = array<i64: 0>")),
            "kiln.inplace: argument is a result; expected arguments that are no results");
}

} // namespace
} // namespace kiln::testing
