// SPDX-License-Identifier: Apache-2.0
//
// The generic translation: index maps, gathers, element types, several results, fallbacks; and the errors of
// unsupported kernels.
#include "Harness.h"
#include "KernelText.h"
#include "LinearKernel.h"
#include "compiler/object/ThisMachine.h"
#include "mlir/IR/Builders.h"
#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/Object/ObjectFile.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

namespace kiln::testing {
namespace {

const std::string copy = "linalg.yield %x0 : f32";

class Translate : public ::testing::TestWithParam<std::string> {};

TEST_P(Translate, TransposeSliceReshape) {
  KernelText k({{1, 60}});
  Value x = k.argument(k.type({"s0", "35"}));
  Value transposed = k.one("pp", {x}, k.type({"35", "s0"}), {"b, a", "a, b"}, copy);
  Value shape = k.empty(k.type({"5"})), wide = k.empty(k.type({"7"}));
  Value reshaped =
      k.one("ppp", {x, shape, wide}, k.type({"s0", "5", "7"}), {"a, b * 7 + c", "b", "c", "a, b, c"}, copy);
  Value sliced = k.one("pp", {x}, k.type({"s0", "20"}), {"a, b + 11", "a, b"}, copy);
  Kernel kernel(k.finish({transposed, reshaped, sliced}), GetParam());
  for (int64_t m : {1, 16, 17, 60}) {
    Tensor in = randomTensor({m, 35});
    auto out = kernel.run({m}, {in});
    Tensor t = Tensor::zeros({35, m}), r = in, s = Tensor::zeros({m, 20});
    r.shape = {m, 5, 7};
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < 35; ++j) {
        t.at({j, i}) = in.at({i, j});
        if (j >= 11 && j < 31)
          s.at({i, j - 11}) = in.at({i, j});
      }
    expectClose(out[0], t, 0);
    expectClose(out[1], r, 0);
    expectClose(out[2], s, 0);
  }
}

TEST_P(Translate, ConcatAndTiledGather) {
  // Rows of a table in a weight's layout, concatenated with another tensor.
  KernelText k({{1, 40}});
  Value ids = k.argument(k.type({"s0"}, "i32")), table = k.argument(KernelText::tiled(100, 24, "#kiln.tiled<0, 16>"));
  Value other = k.argument(k.type({"s0", "9"}));
  Value rows = k.one("pp", {ids}, k.type({"s0", "24"}), {"a", "a, b"},
                     "%i = arith.index_cast %x0 : i32 to index\n%j = linalg.index 1 : index\n"
                     "%e = tensor.extract " +
                         table.name + "[%i, %j] : " + table.type + "\nlinalg.yield %e : f32");
  Value joined = k.one("pp", {}, k.type({"s0", "33"}), {"a, b"},
                       "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n%n = arith.constant 24 : index\n"
                       "%first = arith.cmpi slt, %j, %n : index\n%l = arith.subi %j, %n : index\n"
                       "%p = tensor.extract " +
                           rows.name + "[%i, %j] : " + rows.type +
                           "\n"
                           "%q = tensor.extract " +
                           other.name + "[%i, %l] : " + other.type +
                           "\n"
                           "%r = arith.select %first, %p, %q : f32\nlinalg.yield %r : f32");
  Kernel kernel(k.finish({joined}), GetParam());
  for (int64_t m : {1, 40}) {
    Tensor index = randomIntegers({m}, 0, 100), weights = randomTensor({100, 24}), tail = randomTensor({m, 9});
    Tensor expected = Tensor::zeros({m, 33});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < 33; ++j)
        expected.at({i, j}) = j < 24 ? weights.at({int64_t(index.at({i})), j}) : tail.at({i, j - 24});
    expectClose(kernel.run({m}, {index, weights, tail})[0], expected, 0);
  }
}

TEST_P(Translate, IntegersAndBooleans) {
  KernelText k({{1, 50}});
  std::string i32 = k.type({"s0"}, "i32"), i1 = k.type({"s0"}, "i1");
  Value x = k.argument(i32), y = k.argument(i32), flag = k.argument(i1);
  auto results =
      k.generic("p", {x, y, flag}, {i32, i1}, {"a", "a", "a", "a", "a"},
                "%d = arith.divsi %x0, %x1 : i32\n%r = arith.remsi %x0, %x1 : i32\n%m = arith.muli %d, %r : i32\n"
                "%c = arith.constant 3 : i32\n%s = arith.shrsi %x0, %c : i32\n%t = arith.addi %m, %s : i32\n"
                "%w = arith.extui %x2 : i1 to i32\n%u = arith.addi %t, %w : i32\n"
                "%g = arith.cmpi sgt, %x0, %x1 : i32\n%b = arith.xori %g, %x2 : i1\nlinalg.yield %u, %b : i32, i1");
  Kernel kernel(k.finish(results), GetParam());
  for (int64_t m : {1, 13, 50}) {
    Tensor a = randomIntegers({m}, -1000, 1000), b = randomIntegers({m}, 1, 30), f = randomIntegers({m}, 0, 2), u = a,
           g = a;
    for (int64_t i = 0; i < m; ++i) {
      int p = a.at({i}), q = b.at({i});
      u.at({i}) = p / q * (p % q) + (p >> 3) + f.at({i});
      g.at({i}) = (p > q) != (f.at({i}) != 0);
    }
    auto out = kernel.run({m}, {a, b, f});
    expectClose(out[0], u, 0);
    expectClose(out[1], g, 0);
  }
}

TEST_P(Translate, ScalarResultAndCapturedSymbol) {
  // The mean of all elements, divided by a dynamic dimension, as a tensor of rank 0.
  KernelText k({{1, 1000}});
  Value x = k.argument(k.type({"s0", "3"}));
  Value total = k.reduce("rr", {x}, "tensor<f32>", {"a, b", ""}, "0.0 : f32",
                         "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value mean = k.one(
      "", {total}, "tensor<f32>", {"", ""},
      "%n = arith.index_cast %s0 : index to i32\n%f = arith.sitofp %n : i32 to f32\n%m = arith.divf %x0, %f : f32\n"
      "linalg.yield %m : f32");
  Kernel kernel(k.finish({mean}), GetParam());
  for (int64_t m : {1, 1000}) {
    Tensor in = randomTensor({m, 3}), expected = Tensor::zeros({});
    for (double value : in.values)
      expected.values[0] += value / m;
    EXPECT_NEAR(kernel.run({m}, {in})[0].values[0], expected.values[0], 1e-5);
  }
}

TEST_P(Translate, ReductionsAtTheRootOfAKernel) {
  // y = x * max(x over everything): no dimension of the reduction is one of the result.
  KernelText k({{1, 90}});
  std::string type = k.type({"s0", "21"});
  Value x = k.argument(type);
  Value top = k.reduce("rr", {x}, "tensor<f32>", {"a, b", ""}, "0xff800000 : f32",
                       "%s = arith.maximumf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value y = k.one("pp", {x, top}, type, {"a, b", "", "a, b"}, "%p = arith.mulf %x0, %x1 : f32\nlinalg.yield %p : f32");
  Kernel kernel(k.finish({y}, "kiln.inplace = array<i64: 0>"), GetParam());
  for (int64_t m : {1, 90}) {
    Tensor in = randomTensor({m, 21}), expected = in;
    double largest = *std::max_element(in.values.begin(), in.values.end());
    for (double &value : expected.values)
      value *= largest;
    expectClose(kernel.run({m}, {in})[0], expected);
    expectClose(kernel.run({m}, {in}, /*aliased=*/0)[0], expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Translate, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

std::string pointwise(const std::string &body) {
  KernelText k({{1, 50}});
  Value x = k.argument(k.type({"s0"}));
  return k.finish({k.one("p", {x}, x.type, {"a", "a"}, body + "\nlinalg.yield %r : f32")});
}

TEST(TranslateErrors, NameTheOp) {
  EXPECT_EQ(compileError(pointwise("%r = math.copysign %x0, %x0 : f32")),
            "the halide target has no translation for op 'math.copysign'");
  EXPECT_EQ(compileError(pointwise("%r = math.absf %x0 : f32")), "");
}

TEST(TranslateErrors, RequireBounds) {
  std::string text = pointwise("%r = math.absf %x0 : f32"), bounds = "array<i64: 1, 50>";
  text.replace(text.find(bounds), bounds.size(), "array<i64>");
  EXPECT_NE(compileError(text).find("bounds"), std::string::npos);
}

TEST(TranslateErrors, RefuseLayoutsWithInterleave) {
  const std::string layout = "#kiln.tiled<0, 16, interleave = 4>";
  EXPECT_EQ(compileError(linearKernel(48, 64, layout)),
            "target halide: unsupported layout of a weight; expected one without interleave, got " + layout);
  EXPECT_EQ(compileError(linearKernel(48, 64, "#kiln.tiled<0, 16, interleave = 1>")), "");
}

TEST(TranslateErrors, RefuseTensorOps) {
  EXPECT_EQ(compileError(R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kiln.kernel, kiln.bounds = array<i64>} {
      %c = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
      %d = tensor.cast %c : tensor<?xf32> to tensor<4xf32>
      return %d : tensor<4xf32>
    })")
                .substr(0, 36),
            "kernel function: unknown dimensions;");
}

TEST(Object, HasItsPrefixAndNeedsTheHooksOnly) {
  // tanh, exp and a reduction over dynamic rows: no call of the math library; the bodies of parallel loops have the
  // kernel's name as their prefix.
  KernelText k({{1, 5000}});
  std::string type = k.type({"s0", "64"}), row = k.type({"s0"});
  Value x = k.argument(type);
  Value e = k.one("pp", {x}, type, {"a, b", "a, b"},
                  "%t = math.tanh %x0 : f32\n%e = math.exp %t : f32\n%l = math.log %e : f32\n%q = math.erf %l : f32\n"
                  "linalg.yield %q : f32");
  Value total =
      k.reduce("pr", {e}, row, {"a, b", "a"}, "0.0 : f32", "%s = arith.addf %y0, %x0 : f32\nlinalg.yield %s : f32");
  Value y =
      k.one("pp", {e, total}, type, {"a, b", "a", "a, b"}, "%p = arith.divf %x0, %x1 : f32\nlinalg.yield %p : f32");
  for (const std::string &target : runnableTargets()) {
    Kernel kernel(k.finish({y}), target);
    llvm::MemoryBufferRef buffer(kernel.object().object, "kernel");
    auto object = llvm::object::ObjectFile::createObjectFile(buffer);
    ASSERT_TRUE(bool(object));
    std::set<std::string> defined, needed;
    for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
      uint32_t flags = llvm::cantFail(symbol.getFlags());
      if (flags & llvm::object::SymbolRef::SF_Global)
        (flags & llvm::object::SymbolRef::SF_Undefined ? needed : defined)
            .insert(llvm::cantFail(symbol.getName()).str());
    }
    EXPECT_TRUE(defined.count("kernel"));
    for (const std::string &name : defined)
      EXPECT_EQ(name.rfind("kernel", 0), 0u) << name;
    for (const std::string &name : needed)
      EXPECT_TRUE(name.rfind("halide_", 0) == 0 || name == "memset" || name == "memcpy") << name;
  }
}

TEST(Object, IsTheSameForTheSameKernel) {
  std::string text = pointwise("%r = math.tanh %x0 : f32"), target = runnableTargets().front();
  EXPECT_EQ(Kernel(text, target).object().object, Kernel(text, target).object().object);
}

/// Returns the instructions of a code section: the offset and the text of each.
std::vector<std::pair<uint64_t, std::string>> disassemble(llvm::StringRef code) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
  LLVMDisasmContextRef context = LLVMCreateDisasm("x86_64-linux-gnu", nullptr, 0, nullptr, nullptr);
  std::vector<std::pair<uint64_t, std::string>> instructions;
  std::vector<uint8_t> bytes(code.bytes_begin(), code.bytes_end());
  for (uint64_t at = 0; at < bytes.size();) {
    char text[256];
    size_t length = LLVMDisasmInstruction(context, bytes.data() + at, bytes.size() - at, at, text, sizeof text);
    if (length == 0)
      throw std::runtime_error("no instruction at " + std::to_string(at));
    instructions.emplace_back(at, text);
    at += length;
  }
  LLVMDisasmDispose(context);
  return instructions;
}

TEST(Object, NoBranchTouchesTheEndOf32Bytes) {
  // Intel CPUs with the JCC erratum do not cache decoded code with such a branch. A compare and its branch count as
  // one.
  Kernel kernel(linearKernel(96, 192, "", 300), runnableTargets().back());
  llvm::MemoryBufferRef buffer(kernel.object().object, "kernel");
  auto object = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(buffer));
  int branches = 0;
  for (const llvm::object::SectionRef &section : object->sections()) {
    if (!section.isText() || section.getSize() == 0)
      continue;
    EXPECT_GE(section.getAlignment().value(), 32);
    auto instructions = disassemble(llvm::cantFail(section.getContents()));
    for (size_t i = 1; i + 1 < instructions.size(); ++i) {
      const std::string &text = instructions[i].second;
      if (text.rfind("\tj", 0) != 0)
        continue;
      ++branches;
      bool isFused = text.rfind("\tjmp", 0) != 0 && (instructions[i - 1].second.rfind("\tcmp", 0) == 0 ||
                                                     instructions[i - 1].second.rfind("\ttest", 0) == 0);
      uint64_t first = instructions[isFused ? i - 1 : i].first, end = instructions[i + 1].first;
      EXPECT_EQ(first / 32, end / 32) << instructions[i - 1].second << text << " ends at " << end;
    }
  }
  EXPECT_GT(branches, 5);
}

TEST(Schedule, ConfigsAreChecked) {
  KernelText k({{1, 1000000}});
  Value x = k.argument(k.type({"s0"}));
  std::string text = k.finish({k.one("p", {x}, x.type, {"a", "a"}, "%r = math.absf %x0 : f32\nlinalg.yield %r : f32")});
  ScheduleConfig unknown{{"unroll", 3}}, illegal{{"task", 5}}, legal{{"task", 65536}};
  EXPECT_EQ(compileError(text, &unknown), "pointwise schedule has no parameter \"unroll\"");
  EXPECT_EQ(compileError(text, &illegal),
            "pointwise schedule parameter \"task\": unknown value; expected one of 4096, 16384, 65536, got 5");
  EXPECT_EQ(compileError(text, &legal), "");
  EXPECT_EQ(toString(legal), "task=65536");
}

/// Returns the widths of register tiles of a GEMM with these types of elements and accumulators.
std::vector<int64_t> tileWidths(const std::string &element, const std::string &sum) {
  KernelText k({{64, 128}});
  Value x = k.argument(k.type({"s0", "96"}, element)),
        w = k.argument("tensor<96x96x" + element + ", #kiln.tiled<0, 16>>");
  std::string value = "%x", body;
  if (element != sum) {
    value = "%w";
    for (const char *operand : {"0", "1"})
      body += value + operand + " = arith.extf %x" + operand + " : " + element + " to " + sum + "\n";
  }
  Value y = k.reduce("ppr", {x, w}, k.type({"s0", "96"}, sum), {"a, c", "b, c", "a, b"}, "0.0 : " + sum,
                     body + "%m = arith.mulf " + value + "0, " + value + "1 : " + sum +
                         "\n%s = arith.addf %y0, %m : " + sum + "\nlinalg.yield %s : " + sum);
  Schedulable schedulable = describe(k.finish({y}), "x86-64-v3");
  EXPECT_EQ(schedulable.strategy, "contraction");
  for (const TuningParameter &parameter : schedulable.space)
    if (parameter.key == "n")
      return parameter.values;
  return {};
}

TEST(Schedule, TilesAreVectorsOfTheSums) {
  const std::vector<int64_t> ofEight{8, 16}, ofFour{4, 8, 16};
  EXPECT_EQ(tileWidths("f32", "f32"), ofEight);
  EXPECT_EQ(tileWidths("f16", "f32"), ofEight);
  EXPECT_EQ(tileWidths("f32", "f64"), ofFour);
  EXPECT_EQ(tileWidths("f64", "f64"), ofFour);
}

TEST(Target, LanesAreOfAnElementType) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  MachineModel machine = findTarget("x86-64-v3")->machine();
  const mlir::Type narrow[] = {b.getF16Type(), b.getIntegerType(8), b.getI1Type()};
  for (mlir::Type type : narrow)
    EXPECT_EQ(vectorLanes(machine, type), 8) << "as many as of what they are mixed with";
  EXPECT_EQ(vectorLanes(machine, b.getF32Type()), 8);
  EXPECT_EQ(vectorLanes(machine, b.getI32Type()), 8);
  EXPECT_EQ(vectorLanes(machine, b.getF64Type()), 4);
  EXPECT_EQ(vectorRegisters(machine, b.getF64Type()), 16);
  machine.laneBits = 8;
  EXPECT_EQ(vectorLanes(machine, narrow[0]), 16);
  EXPECT_EQ(vectorLanes(machine, narrow[1]), 32);
  EXPECT_EQ(vectorLanes(machine, narrow[2]), 32);
}

TEST(Target, NamesAndLookup) {
  EXPECT_EQ(targetNames(), (std::vector<std::string>{"x86-64-v4-vnni",
                                                     "x86-64-v4",
                                                     "x86-64-v3",
                                                     "x86-64-v2",
                                                     "aarch64-dotprod",
                                                     "aarch64",
                                                     "riscv64-v",
                                                     "riscv64",
                                                     "wasm32",
                                                     "wasm32-relaxed",
                                                     "x86-64-v4-vnni-windows",
                                                     "x86-64-v4-windows",
                                                     "x86-64-v3-windows",
                                                     "x86-64-v2-windows",
                                                     "aarch64-dotprod-windows",
                                                     "aarch64-windows",
                                                     "x86-64-v4-vnni-macos",
                                                     "x86-64-v4-macos",
                                                     "x86-64-v3-macos",
                                                     "x86-64-v2-macos",
                                                     "aarch64-dotprod-macos",
                                                     "aarch64-macos",
                                                     "aarch64-dotprod-android",
                                                     "aarch64-android",
                                                     "x86-64-v4-vnni-android",
                                                     "x86-64-v4-android",
                                                     "x86-64-v3-android",
                                                     "x86-64-v2-android",
                                                     "aarch64-dotprod-ios",
                                                     "aarch64-ios",
                                                     "aarch64-dotprod-ios-simulator",
                                                     "aarch64-ios-simulator",
                                                     "x86-64-v3-ios-simulator",
                                                     "x86-64-v2-ios-simulator",
                                                     "cuda"}));
#if defined(__aarch64__)
  EXPECT_EQ(defaultTargetNames(), std::vector<std::string>{"aarch64"});
#elif defined(__x86_64__)
  EXPECT_EQ(defaultTargetNames(), (std::vector<std::string>{"x86-64-v4", "x86-64-v3"}));
#endif
  EXPECT_EQ(findTarget("x86-64-v5"), nullptr);
  EXPECT_EQ(findTarget("x86-64-v3-windows")->measuredAs(), "x86-64-v3");
  EXPECT_EQ(findTarget("aarch64-ios-simulator")->measuredAs(), "aarch64");
  EXPECT_EQ(findTarget("riscv64-ios"), nullptr);
  EXPECT_EQ(findTarget("x86-64-v4-ios-simulator"), nullptr) << "LLVM 22 compiles no kernels with AVX-512";
  EXPECT_EQ(findTarget("cuda")->measuredAs(), "cuda");
  for (const std::string &name : targetNames()) {
    auto target = findTarget(name);
    EXPECT_EQ(target->name(), name);
    if (name == "cuda") {
      EXPECT_EQ(target->weightTile(3072, 768), 0) << "dense";
      continue;
    }
    EXPECT_EQ(target->weightTile(3072, 768) * 4 % target->machine().vectorBytes, 0);
    EXPECT_EQ(target->weightTile(1, 768), 0);
    for (int64_t outputs : {64, 128, 256}) { // the numbers of most layers of convolutional networks
      const int64_t tile = target->weightTile(outputs, 576), stored = (outputs + tile - 1) / tile * tile;
      EXPECT_LE(16 * stored, 17 * outputs) << name;
    }
  }
}

TEST(Target, DefaultsRunOnThisSystem) {
  ASSERT_FALSE(defaultTargetNames().empty());
  for (const std::string &name : defaultTargetNames())
    EXPECT_TRUE(isForThisMachine(findTarget(name)->info().hostTriple)) << name;
}

TEST(Target, GpusHaveHostCodeForEachOfTheirCpus) {
  for (const char *triple : {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}) {
    const Target *form = findTarget("cuda", triple);
    ASSERT_NE(form, nullptr) << triple;
    EXPECT_EQ(form->info().hostTriple, triple);
    EXPECT_EQ(form->name(), "cuda");
  }
  EXPECT_EQ(findTarget("cuda", "riscv64-unknown-linux-gnu"), nullptr);
  EXPECT_EQ(findTarget("aarch64", "x86_64-unknown-linux-gnu"), nullptr);
  EXPECT_TRUE(isForThisMachine(findTarget("cuda")->info().hostTriple));
}

} // namespace
} // namespace kiln::testing
