// SPDX-License-Identifier: Apache-2.0
//
// Kernels without a reduction: indexing maps, element types, look-ups, several results, results in the memory of
// arguments, math library functions.
#include "DeviceKernel.h"
#include "KernelText.h"
#include "compiler/dialect/AffineEval.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const std::string copy = "linalg.yield %x0 : f32";
constexpr double leastInteger = -2147483648.0;

/// Whether Halide can generate the kernel.
bool hasHalide(const std::string &text) {
  return llvm::any_of(describe(text, "cuda").space, [](auto &parameter) { return parameter.key == "halide"; });
}

/// Each case runs twice: by the tile builder, and by Halide where it can generate the kernel.
class CudaPointwise : public ::testing::TestWithParam<bool> {
protected:
  static DeviceKernel compile(const std::string &text, ScheduleConfig config = {}) {
    if (GetParam() && hasHalide(text))
      config["halide"] = 1;
    return DeviceKernel(text, &config);
  }
};
INSTANTIATE_TEST_SUITE_P(, CudaPointwise, ::testing::Bool(),
                         [](auto &info) { return std::string(info.param ? "ByHalide" : "ByTheTileBuilder"); });

TEST_P(CudaPointwise, BroadcastAndTransposed) {
  KernelText k({{0, 60}});
  std::string wide = k.type({"s0", "35"});
  Value x = k.argument(wide), bias = k.argument(k.type({"35"})), y = k.argument(k.type({"35", "s0"}));
  Value sum = k.one("pp", {x, bias, y}, wide, {"a, b", "b", "b, a", "a, b"},
                    "%s = arith.addf %x0, %x1 : f32\n%p = arith.mulf %s, %x2 : f32\nlinalg.yield %p : f32");
  std::string text = k.finish({sum}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel = compile(text);
  for (int64_t m : {1, 7, 60})
    kernel.check({m}, randomInputs(text, {m}), 1e-6);
}

TEST_P(CudaPointwise, EveryConfigOfTheSearchSpace) {
  KernelText k({{1, 60}});
  Value x = k.argument(k.type({"s0", "35"}));
  Value y = k.one("pp", {x}, k.type({"35", "s0"}), {"b, a", "a, b"}, copy);
  std::string text = k.finish({y});
  for (int64_t threads : {64, 128, 256, 512}) {
    ScheduleConfig config{{"threads", threads}};
    DeviceKernel kernel = compile(text, config);
    EXPECT_EQ(kernel.plan().functions.front().threads, threads);
    kernel.check({29}, randomInputs(text, {29}));
  }
  ScheduleConfig wrong{{"threads", 100}};
  EXPECT_EQ(refusal(text, &wrong),
            "loops schedule parameter \"threads\": unknown value; expected one of 64, 128, 256, 512, got 100");
}

TEST_P(CudaPointwise, OffsetsBeyond32Bits) {
  // Tensors whose bounds give 4.9e9 elements, run with few.
  KernelText k({{1, 70000}, {1, 70000}});
  std::string type = k.type({"s0", "s1"});
  Value x = k.argument(type);
  Value y = k.one("pp", {x}, k.type({"s1", "s0"}), {"b, a", "a, b"}, copy);
  std::string text = k.finish({y});
  DeviceKernel kernel = compile(text);
  EXPECT_NE(kernel.plan().images.back().text.find("mul.wide"), std::string::npos);
  kernel.check({41, 37}, randomInputs(text, {41, 37}));
}

TEST_P(CudaPointwise, NoRowsLaunchNothing) {
  KernelText k({{0, 60}});
  Value x = k.argument(k.type({"s0", "35"}));
  Value y = k.one("pp", {x}, k.type({"s0", "35"}), {"a, b", "a, b"}, copy);
  DeviceKernel kernel = compile(k.finish({y}));
  EXPECT_EQ(mlir::kiln::evaluateExtent(kernel.plan().launches.front().blocks, {0}), 0);
  EXPECT_TRUE(kernel.run({0}, {Tensor::zeros({0, 35})})[0].values.empty());
}

TEST_P(CudaPointwise, TransposeSliceReshape) {
  KernelText k({{1, 60}});
  Value x = k.argument(k.type({"s0", "35"}));
  Value transposed = k.one("pp", {x}, k.type({"35", "s0"}), {"b, a", "a, b"}, copy);
  Value shape = k.empty(k.type({"5"})), wide = k.empty(k.type({"7"}));
  Value split = k.one("ppp", {x, shape, wide}, k.type({"s0", "5", "7"}), {"a, b * 7 + c", "b", "c", "a, b, c"}, copy);
  Value sliced = k.one("pp", {x}, k.type({"s0", "20"}), {"a, b + 11", "a, b"}, copy);
  Value joined = k.one("p", {split}, k.type({"s0 * 35"}), {"a floordiv 35, (a floordiv 7) mod 5, a mod 7", "a"}, copy);
  std::string text = k.finish({transposed, split, sliced, joined});
  DeviceKernel kernel = compile(text);
  for (int64_t m : {1, 17, 60})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST_P(CudaPointwise, IntegersAtTheirEnds) {
  KernelText k({{1, 50}});
  std::string i32 = k.type({"s0"}, "i32"), i1 = k.type({"s0"}, "i1");
  Value x = k.argument(i32), y = k.argument(i32), flag = k.argument(i1);
  auto results = k.generic("p", {x, y, flag}, {i32, i32, i32, i32, i1}, {"a", "a", "a", "a", "a", "a", "a", "a"},
                           "%d = arith.divsi %x0, %x1 : i32\n%r = arith.remsi %x0, %x1 : i32\n"
                           "%f = arith.floordivsi %x0, %x1 : i32\n%c = arith.constant 3 : i32\n"
                           "%s = arith.shrsi %x0, %c : i32\n%m = arith.muli %x0, %x1 : i32\n"
                           "%w = arith.extui %x2 : i1 to i32\n%u = arith.addi %m, %w : i32\n%v = arith.xori %u, %s : "
                           "i32\n%g = arith.cmpi sgt, %x0, %x1 : i32\n%b = arith.xori %g, %x2 : i1\n"
                           "linalg.yield %d, %r, %f, %v, %b : i32, i32, i32, i32, i1");
  std::string text = k.finish(results, "kiln.inplace = array<i64: 0, 1, 2>");
  DeviceKernel kernel = compile(text);
  std::vector<Tensor> inputs = randomInputs(text, {50});
  kernel.check({50}, inputs);
  const double ends[] = {leastInteger, -1, 0, 1, 7, -7, 2147483647.0};
  for (int i = 0; i < 49; ++i) {
    inputs[0].values[i] = ends[i / 7];
    inputs[1].values[i] = ends[i % 7];
  }
  kernel.check({50}, inputs);
}

TEST_P(CudaPointwise, BytesAndConversions) {
  KernelText k({{1, 300}});
  std::string i8 = k.type({"s0"}, "i8"), i32 = k.type({"s0"}, "i32"), f32 = k.type({"s0"});
  Value x = k.argument(i8), y = k.argument(f32), z = k.argument(i32);
  auto results = k.generic("p", {x, y, z}, {i8, i32, f32, i32}, {"a", "a", "a", "a", "a", "a", "a"},
                           "%w = arith.extsi %x0 : i8 to i32\n%p = arith.muli %w, %x2 : i32\n"
                           "%t = arith.trunci %p : i32 to i8\n%i = arith.fptosi %x1 : f32 to i32\n"
                           "%f = arith.sitofp %x2 : i32 to f32\n%b = arith.bitcast %x1 : f32 to i32\n"
                           "linalg.yield %t, %i, %f, %b : i8, i32, f32, i32");
  std::string text = k.finish(results, "kiln.inplace = array<i64: 0, 1, 2>");
  DeviceKernel kernel = compile(text);
  std::vector<Tensor> inputs = randomInputs(text, {300});
  const double floats[] = {NAN, INFINITY, -INFINITY, 3e9, -3e9, 2147483520.0, leastInteger, -0.0, 0.99, -1.5};
  std::copy(std::begin(floats), std::end(floats), inputs[1].values.begin());
  kernel.check({300}, inputs);
}

TEST_P(CudaPointwise, WildIndicesStayInsideOfTheTable) {
  KernelText k({{1, 40}, {0, 30}});
  Value ids = k.argument(k.type({"s0"}, "i32")), table = k.argument(k.type({"s1", "24"}));
  Value rows = k.one("pp", {ids}, k.type({"s0", "24"}), {"a", "a, b"},
                     "%i = arith.index_cast %x0 : i32 to index\n%j = linalg.index 1 : index\n"
                     "%n = arith.constant 3 : index\n%m = arith.addi %i, %n : index\n%e = tensor.extract " +
                         table.name + "[%m, %j] : " + table.type + "\nlinalg.yield %e : f32");
  std::string text = k.finish({rows});
  DeviceKernel kernel = compile(text);
  std::vector<Tensor> inputs = randomInputs(text, {40, 30}, -40, 40);
  const double wild[] = {leastInteger, 2147483647.0, -1, 30, 29, -4, -3, 1 << 30};
  std::copy(std::begin(wild), std::end(wild), inputs[0].values.begin());
  kernel.check({40, 30}, inputs);
  // A table without rows is not read.
  EXPECT_EQ(kernel.run({40, 0}, {inputs[0], Tensor::zeros({0, 24})})[0].values, std::vector<double>(40 * 24, 0.0));
}

TEST_P(CudaPointwise, LookUpsInWhatTheKernelComputes) {
  KernelText k({{1, 40}});
  Value ids = k.argument(k.type({"s0"}, "i32")), table = k.argument(k.type({"20", "9"}));
  Value twice = k.one("pp", {table}, table.type, {"a, b", "a, b"},
                      "%s = math.exp %x0 : f32\n%d = arith.divf %x0, %s : f32\nlinalg.yield %d : f32");
  Value rows = k.one("pp", {ids}, k.type({"s0", "9"}), {"a", "a, b"},
                     "%i = arith.index_cast %x0 : i32 to index\n%j = linalg.index 1 : index\n%e = tensor.extract " +
                         twice.name + "[%i, %j] : " + twice.type + "\nlinalg.yield %e : f32");
  std::string text = k.finish({rows});
  DeviceKernel kernel = compile(text);
  EXPECT_EQ(kernel.plan().launches.size(), 2U) << "what is looked up is stored once";
  kernel.check({40}, randomInputs(text, {40}, 0, 20), 1e-6);
}

TEST_P(CudaPointwise, ChainsAreOneLaunch) {
  KernelText k({{1, 40}});
  std::string wide = k.type({"s0", "30"});
  Value x = k.argument(wide);
  Value exp = k.one("pp", {x}, wide, {"a, b", "a, b"}, "%s = math.exp %x0 : f32\nlinalg.yield %s : f32");
  Value tanh =
      k.one("pp", {exp}, k.type({"30", "s0"}), {"b, a", "a, b"}, "%s = math.tanh %x0 : f32\nlinalg.yield %s : f32");
  Value sum =
      k.one("pp", {tanh, x}, wide, {"b, a", "a, b", "a, b"}, "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32");
  std::string text = k.finish({sum}, "kiln.inplace = array<i64: 0>");
  DeviceKernel kernel = compile(text);
  EXPECT_EQ(kernel.plan().launches.size(), 1U);
  EXPECT_EQ(kernel.plan().scratchBytes, 0);
  kernel.check({40}, randomInputs(text, {40}), 1e-6);
}

TEST_P(CudaPointwise, RankZeroAndConstants) {
  KernelText k({{1, 1000}});
  Value x = k.argument("tensor<f32>");
  Value three = k.fill(k.constant("3.0 : f32"), k.type({"s0"}));
  Value y = k.one("", {x}, "tensor<f32>", {"", ""},
                  "%n = arith.index_cast %s0 : index to i32\n%f = arith.sitofp %n : i32 to f32\n"
                  "%m = arith.divf %x0, %f : f32\nlinalg.yield %m : f32");
  std::string text = k.finish({y, three, y, x});
  DeviceKernel kernel = compile(text);
  for (int64_t m : {1, 999})
    kernel.check({m}, randomInputs(text, {m}));
}

TEST_P(CudaPointwise, FunctionsOfTheMathLibrary) {
  for (std::string name : {"exp", "exp2", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "sqrt", "rsqrt",
                           "floor", "ceil", "trunc", "round", "roundeven", "absf"}) {
    SCOPED_TRACE(name);
    KernelText k({{1, 3000}});
    std::string type = k.type({"s0"});
    Value x = k.argument(type);
    Value y = k.one("p", {x}, type, {"a", "a"}, "%s = math." + name + " %x0 : f32\nlinalg.yield %s : f32");
    DeviceKernel kernel = compile(k.finish({y}, "kiln.inplace = array<i64: 0>"));
    Tensor in = randomTensor({3000}, 3);
    const double special[] = {0.0, -0.0, 0.5, 1.5, 2.5, -0.5, INFINITY, -INFINITY, NAN, 1e-40, 88, -88, 1e30};
    std::copy(std::begin(special), std::end(special), in.values.begin());
    if (name == "log") // log of subnormals is the log of the smallest normal number
      in.values[9] = 1e-37;
    if (name == "sin" || name == "cos" || name.starts_with("exp"))
      // outside this range, the polynomials' error bound exceeds the comparison's tolerance
      for (double &value : in.values)
        value = std::isfinite(value) ? std::clamp(value, -80.0, 10.0) : name.starts_with("exp") ? value : 0;
    kernel.check({3000}, {in}, 1e-6);
  }
}

TEST_P(CudaPointwise, NanGoesThroughMaximumAndMinimum) {
  KernelText k({{1, 30}});
  std::string type = k.type({"s0"});
  Value x = k.argument(type), y = k.argument(type);
  auto results = k.generic("p", {x, y}, {type, type, type}, {"a", "a", "a", "a", "a"},
                           "%s = arith.maximumf %x0, %x1 : f32\n%t = arith.minimumf %x0, %x1 : f32\n"
                           "%d = arith.divf %x0, %x1 : f32\nlinalg.yield %s, %t, %d : f32, f32, f32");
  DeviceKernel kernel = compile(k.finish(results));
  Tensor a = randomTensor({30}), b = randomTensor({30});
  a.values[0] = b.values[1] = a.values[2] = b.values[2] = NAN;
  a.values[3] = INFINITY;
  b.values[4] = 0;
  kernel.check({30}, {a, b});
}

TEST_P(CudaPointwise, StrictOpsAreNotFused) {
  // (x * y) - x * y is 0 only if both products are rounded.
  KernelText k({{1, 500}});
  std::string type = k.type({"s0"});
  Value x = k.argument(type), y = k.argument(type);
  Value z = k.one("p", {x, y}, type, {"a", "a", "a"},
                  "%p = arith.mulf %x0, %x1 {kiln.strict} : f32\n%q = arith.mulf %x1, %x0 {kiln.strict} : f32\n"
                  "%d = arith.subf %p, %q {kiln.strict} : f32\n%s = arith.subf %x0, %d {kiln.strict} : f32\n"
                  "linalg.yield %s : f32");
  std::string text = k.finish({z});
  DeviceKernel kernel = compile(text);
  kernel.check({500}, randomInputs(text, {500}));
  Value fused = k.one("p", {x, y}, type, {"a", "a", "a"},
                      "%p = math.fma %x0, %x1, %x0 : f32\n%q = arith.mulf %x0, %p {kiln.strict} : f32\n"
                      "%r = arith.addf %q, %x1 {kiln.strict} : f32\nlinalg.yield %r : f32");
  const std::string ptx = compile(k.finish({fused})).plan().images.back().text;
  EXPECT_NE(ptx.find("fma.rn.f32"), std::string::npos);
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos) << "the assembler must not fuse it, either";
  EXPECT_NE(ptx.find("add.rn.f32"), std::string::npos);
}

TEST_P(CudaPointwise, NarrowFloatsAreComputedInF32) {
  for (std::string element : {"f16", "bf16"}) {
    SCOPED_TRACE(element);
    KernelText k({{1, 200}});
    std::string narrow = k.type({"s0"}, element), f32 = k.type({"s0"});
    Value x = k.argument(narrow), y = k.argument(narrow);
    auto results = k.generic("p", {x, y}, {narrow, f32, narrow}, {"a", "a", "a", "a", "a"},
                             "%s = arith.mulf %x0, %x1 : " + element + "\n%w = arith.extf %x0 : " + element +
                                 " to f32\n%t = arith.addf %w, %w : f32\n%n = arith.truncf %t : f32 to " + element +
                                 "\n%m = arith.maximumf %s, %n : " + element +
                                 "\nlinalg.yield %s, %t, %m : " + element + ", f32, " + element);
    DeviceKernel kernel = compile(k.finish(results, "kiln.inplace = array<i64: 0, 1>"));
    Tensor a = randomIntegers({200}, -11, 12), b = randomIntegers({200}, -11, 12), product = a, twice = a, most = a;
    for (size_t i = 0; i < 200; ++i) { // all of them are exact
      product.values[i] = a.values[i] * b.values[i];
      twice.values[i] = 2 * a.values[i];
      most.values[i] = std::max(product.values[i], twice.values[i]);
    }
    auto out = kernel.run({200}, {a, b}, std::pair(2U, 1U));
    expectClose(out[0], product, 0);
    expectClose(out[1], twice, 0);
    expectClose(out[2], most, 0);
  }
}

} // namespace
} // namespace kiln::testing
