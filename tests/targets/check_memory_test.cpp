// SPDX-License-Identifier: Apache-2.0
//
// The check of kernels' memory accesses: kernels of every strategy pass at odd sizes, with configurations of their
// search spaces. check_statement_test.cpp has statements that fail.
#include "LinearKernel.h"
#include "compiler/schedule/SearchSpace.h"

namespace kiln::testing {
namespace {

class CheckMemory : public ::testing::TestWithParam<std::string> {
protected:
  std::string tiled() const { return "#kiln.tiled<0, " + number(findTarget(GetParam())->weightTile(96, 64)) + ">"; }

  /// Expects that configurations of the space pass for each value of the first index argument.
  void expectFine(const std::string &text, const char *strategy, std::initializer_list<int64_t> sizes, int more = 1,
                  const ScheduleConfig &fixed = {}) {
    Schedulable schedulable = describe(text, GetParam());
    EXPECT_EQ(schedulable.strategy, strategy);
    constexpr int64_t stepLimit = int64_t(1) << 28;
    std::vector<MemoryCase> cases;
    for (int64_t size : sizes)
      cases.push_back({{size}, 0, stepLimit});
    if (sizes.size() == 0)
      cases.push_back({{}, 0, stepLimit});
    for (ScheduleConfig config : configsToTry(schedulable.space, more, GetParam())) {
      for (auto [key, value] : fixed)
        config[key] = value;
      if (!obeysRules(schedulable.space, config))
        continue;
      SCOPED_TRACE(toString(config));
      MemoryCheck check = checkMemory(text, GetParam(), cases, &config);
      EXPECT_EQ(check.fault, "");
      EXPECT_EQ(check.tooLarge, 0);
    }
  }
};

TEST_P(CheckMemory, Contractions) {
  expectFine(linearKernel(53, 29, tiled(), 300), "contraction", {1, 7, 19, 61});
  expectFine(linearKernel(40, 16, "", 300), "contraction", {1, 13, 61});
  expectFine(linearKernel(53, 29, tiled(), 30), "skinny_gemm", {1, 2, 19});
}

/// Returns x w^T with this number of rows, and a result of another shape, so that sums are stored by a separate Func.
std::string productWithAnotherResult(int rows, int columns, const std::string &layout) {
  KernelText text;
  Value x = text.argument(text.type({number(rows), "29"})), w = text.argument(KernelText::tiled(columns, 29, layout));
  Value y = text.reduce("ppr", {x, w}, text.type({number(rows), number(columns)}), {"a, c", "b, c", "a, b"},
                        "0.0 : f32", multiplyAdd);
  Value twice = text.one("pp", {x}, x.type, {"a, b", "a, b"}, "%t = arith.addf %x0, %x0 : f32\nlinalg.yield %t : f32");
  return text.finish({y, twice});
}

TEST_P(CheckMemory, ContractionsWithAnotherResult) {
  // Without padding after its rows Halide considers the last panel's guarded vectors unreachable, and stores them over
  // those of the first panel.
  for (int columns : {33, 53, 97})
    for (int rows : {1, 5, 12, 33, 37})
      expectFine(productWithAnotherResult(rows, columns, tiled()), rows > 32 ? "contraction" : "skinny_gemm", {}, 0);
}

std::string runTime(const std::string &shape, const std::string &extents, const std::string &element = "f32") {
  return "tensor<" + shape + "x" + element + ", affine_map<()[s0] -> (" + extents + ")>>";
}

/// Returns causal attention of two heads whose lengths are any integers, with s0 queries or one. With `hasHeads` heads
/// are a separate axis of the arguments.
std::string attention(bool isOneQuery, bool hasHeads) {
  const std::string kv = runTime("2x?x48", "2, s0, 48"), q = isOneQuery ? "tensor<2x1x48xf32>" : kv,
                    kvOfHeads = hasHeads ? runTime("2x?x2x24", "2, s0, 2, 24") : kv,
                    qOfHeads = !hasHeads    ? q
                               : isOneQuery ? "tensor<2x1x2x24xf32>"
                                            : kvOfHeads;
  auto view = [](const std::string &to, const std::string &from, const std::string &type, const std::string &result) {
    return "  %" + to + " = kiln.reshape %" + from + " : " + type + " -> " + result + "\n";
  };
  return "func.func private @attention(%s0: index, %q: " + qOfHeads + ", %k: " + kvOfHeads + ", %v: " + kvOfHeads +
         ", %n: tensor<2xi32>) -> " + qOfHeads + " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 300>} {\n" +
         view("qw", "q", qOfHeads, q) + view("kw", "k", kvOfHeads, kv) + view("vw", "v", kvOfHeads, kv) +
         "  %0 = kiln.attention %qw, %kw, %vw lengths %n heads = 2 scale = 0.25 causal : (" + q + ", " + kv + ", " +
         kv + ", tensor<2xi32>) -> " + q + "\n" + view("1", "0", q, qOfHeads) + "  return %1 : " + qOfHeads + "\n}\n";
}

TEST_P(CheckMemory, Attention) {
  expectFine(attention(false, true), "attention", {1, 5, 17, 67});
  expectFine(attention(true, true), "one_query", {1, 5, 67});
}

TEST_P(CheckMemory, ContractionsOfComputedOperands) {
  // Full row tiles must not require more rows of an operand's producer than there are.
  for (bool isOneQuery : {false, true})
    for (int64_t pack : {0, 1})
      expectFine(attention(isOneQuery, false), "contraction", {1, 5, 17}, 0, {{"pack", pack}});
}

/// Returns a convolution with a 3 x 3 window, with `hasSecond` together with a result of another shape.
std::string convolution(int size, int channels, int outputs, int stride, bool hasSecond, const std::string &layout) {
  const int result = (size - 1) / stride + 1;
  const std::string c = number(channels), o = number(outputs), r = number(result), n = number(size);
  const std::string x = runTime("?x" + n + "x" + n + "x" + c, "s0, " + n + ", " + n + ", " + c);
  const std::string y = runTime("?x" + r + "x" + r + "x" + o, "s0, " + r + ", " + r + ", " + o);
  const std::string w = "tensor<" + o + "x" + c + "x3x3xf32, " + layout + ">", b = "tensor<" + o + "xf32>";
  const std::string s = "[" + number(stride) + ", " + number(stride) + "]";
  return "func.func private @conv(%s0: index, %x: " + x + ", %w: " + w + ", %b: " + b + ") -> (" + y +
         (hasSecond ? ", " + x : "") + ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, 3>} {\n" +
         "  %0 = kiln.conv2d %x, %w, %b stride = " + s + " padding = [1, 1] dilation = [1, 1] groups = 1 : (" + x +
         ", " + w + ", " + b + ") -> " + y + "\n  %1 = kiln.relu %x : " + x + "\n  return %0" +
         (hasSecond ? ", %1" : "") + " : " + y + (hasSecond ? ", " + x : "") + "\n}\n";
}

TEST_P(CheckMemory, Convolutions) {
  for (bool hasSecond : {false, true}) {
    expectFine(convolution(9, 24, 53, 2, hasSecond, tiled()), "convolution", {1, 2}, 0);
    expectFine(convolution(11, 33, 53, 1, hasSecond, tiled()), "winograd", {1, 2}, 0);
  }
}

/// Returns one op over rows, in place.
std::string rows(const std::string &op, int width, int axis = 1) {
  const std::string x = runTime("?x" + number(width), "s0, " + number(width));
  return "func.func private @rows(%s0: index, %x: " + x + ") -> " + x +
         " attributes {kiln.kernel, kiln.inplace = array<i64: 0>, kiln.bounds = array<i64: 1, 5000>} {\n  %0 = kiln." +
         op + " %x" + (op == "softmax" ? " axis = " + number(axis) : "") + " : " + x + "\n  return %0 : " + x + "\n}\n";
}

TEST_P(CheckMemory, Rows) {
  for (int width : {1, 3, 5, 9, 17, 37})
    expectFine(rows("softmax", width), "row_reduction", {1, 9, 200}, 0);
  expectFine(rows("softmax", 37, /*axis=*/0), "row_reduction", {1, 9, 200});
  expectFine(rows("gelu", 37), "pointwise", {1, 9, 700});
}

TEST_P(CheckMemory, LookUps) {
  const std::string ids = runTime("?", "s0", "i32"), y = runTime("?x75", "s0, 75");
  const std::string text =
      "func.func private @lookup(%s0: index, %i: " + ids + ", %t: tensor<40x75xf32>) -> " + y +
      " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 100000>} {\n  %0 = kiln.embedding %i, %t : (" + ids +
      ", tensor<40x75xf32>) -> " + y + "\n  return %0 : " + y + "\n}\n";
  expectFine(text, "pointwise", {1, 13, 1501});
}

TEST_P(CheckMemory, SaysWhatWasTooLarge) {
  MemoryCheck check = checkMemory(rows("gelu", 37), GetParam(), {{{5}}, {{5000}, 0, 1000}});
  EXPECT_EQ(check.fault, "");
  EXPECT_EQ(check.checked, 1);
  EXPECT_EQ(check.tooLarge, 1);
}

INSTANTIATE_TEST_SUITE_P(Targets, CheckMemory, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
