// SPDX-License-Identifier: Apache-2.0
//
// Tiled contractions: loops in all orders, odd dimensions, producers and epilogues, addresses that are no multiples of
// 16, every end of the search space; and the instructions of the inner loop.
#include "DeviceKernel.h"
#include "ProductKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Expects the contraction strategy, and no local memory.
void expectTiles(const DeviceKernel &kernel) {
  EXPECT_EQ(kernel.plan().strategy, "contraction");
  EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
}

TEST(CudaContraction, LinearWithEpilogueInOddSizes) {
  for (auto [n, k] : {std::pair(1, 1), std::pair(31, 2), std::pair(33, 3), std::pair(129, 7), std::pair(200, 31),
                      std::pair(64, 33), std::pair(53, 129), std::pair(72, 200)}) {
    SCOPED_TRACE(number(n) + " x " + number(k));
    std::string text = linearKernel(n, k, "", 200);
    DeviceKernel kernel(text);
    expectTiles(kernel);
    EXPECT_EQ(kernel.plan().launches.size(), 1U) << "the epilogue is part of it";
    EXPECT_EQ(kernel.plan().scratchBytes, 0);
    for (int64_t m : {1, 2, 3, 7, 31, 33, 129, 200})
      kernel.check({m}, randomInputs(text, {m}), 1e-5);
  }
}

TEST(CudaContraction, TransposedInputs) {
  for (Form form : {Form{false, false}, Form{false, true}, Form{true, false}, Form{true, true}})
    for (auto [m, n, k] : {std::tuple(36, 68, 40), std::tuple(33, 35, 37)}) {
      SCOPED_TRACE(form.maps()[0] + " " + form.maps()[1] + " " + number(m));
      std::string text = matmulKernel(form, number(m), number(n), number(k), 1);
      DeviceKernel kernel(text);
      expectTiles(kernel);
      for (int64_t offset : {0, 4}) {
        kernel.setOffset(offset);
        kernel.check({1, 0, 1}, randomInputs(text, {1, 0, 1}), 1e-5);
      }
    }
}

TEST(CudaContraction, ExtentsAtRunTime) {
  for (Form form : {Form{false, false}, Form{true, true}}) {
    std::string text = matmulKernel(form, "s0", "s2", "s1", 150);
    DeviceKernel kernel(text);
    expectTiles(kernel);
    for (auto [m, k, n] : {std::tuple(1, 1, 1), std::tuple(129, 33, 67), std::tuple(150, 150, 1)})
      kernel.check({m, k, n}, randomInputs(text, {m, k, n}), 1e-5);
    const Tensor nothing = kernel.run({5, 0, 3}, {Tensor::zeros({5, 0}), Tensor::zeros({0, 3})})[0];
    for (double sum : nothing.values)
      EXPECT_EQ(sum, 0);
  }
}

//===- Loops -------------------------------------------------------------===//

struct Loops {
  std::string name, loops;
  std::vector<std::string> x, w, y, maps; // shapes, and indexing maps of all three
  bool isSkinny = false;
};

/// Contractions of typical models, with s0 rows.
std::vector<Loops> someLoops() {
  return {
      {"batched", "pppr", {"3", "s0", "20"}, {"3", "37", "20"}, {"3", "s0", "37"}, {"a, b, d", "a, c, d", "a, b, c"}},
      {"batch at run time",
       "pppr",
       {"s0", "5", "9"},
       {"s0", "9", "6"},
       {"s0", "5", "6"},
       {"a, b, d", "a, d, c", "a, b, c"},
       true},
      {"two loops of rows", "pppr", {"s0", "5", "12"}, {"36", "12"}, {"s0", "5", "36"}, {"a, b, d", "c, d", "a, b, c"}},
      {"two loops of columns",
       "pppr",
       {"s0", "12"},
       {"12", "7", "8"},
       {"s0", "7", "8"},
       {"a, d", "d, b, c", "a, b, c"}},
      {"heads", "pppr", {"s0", "3", "8"}, {"s0", "3", "8"}, {"3", "s0", "s0"}, {"b, a, d", "c, a, d", "a, b, c"}},
      {"two loops of K", "pprr", {"s0", "3", "5"}, {"33", "5", "3"}, {"s0", "33"}, {"a, c, d", "b, d, c", "a, b"}},
      {"columns of the left input", "ppr", {"9", "s0"}, {"9", "33"}, {"33", "s0"}, {"c, b", "c, a", "a, b"}},
      {"a vector", "pr", {"20"}, {"s0", "20"}, {"s0"}, {"b", "a, b", "a"}, true},
      {"windows",
       "ppprr",
       {"s0", "12", "4"},
       {"3", "4", "9"},
       {"s0", "5", "9"},
       {"a, b * 2 + d, e", "d, e, c", "a, b, c"}},
  };
}

std::string textOf(const Loops &c) {
  KernelText text({{1, 40}});
  Value x = text.argument(text.type(c.x)), w = text.argument(text.type(c.w));
  return text.finish({text.reduce(c.loops, {x, w}, text.type(c.y), c.maps, "0.0 : f32", multiplyAdd)});
}

TEST(CudaContraction, LoopsOfAllKinds) {
  for (const Loops &c : someLoops()) {
    SCOPED_TRACE(c.name);
    std::string text = textOf(c);
    DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().strategy, c.isSkinny ? "skinny_gemm" : "contraction");
    for (int64_t m : {1, 3, 33})
      kernel.check({m}, randomInputs(text, {m}), 1e-5);
  }
}

TEST(CudaContraction, NarrowFloatsAreAddedInF32) {
  // Integers, whose sums are exact in f32 and would not be in the inputs' type.
  for (std::string element : {"bf16", "f16"})
    for (int64_t rows : {3, 40}) {
      KernelText text({{1, 1}});
      Value x = text.argument(text.type({number(rows), "72"}, element)),
            w = text.argument(text.type({"50", "72"}, element));
      const std::string to = " : " + element + " to f32\n";
      Value y = text.reduce("ppr", {x, w}, text.type({number(rows), "50"}), {"a, c", "b, c", "a, b"}, "0.0 : f32",
                            "%p = arith.extf %x0" + to + "%q = arith.extf %x1" + to +
                                "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
      DeviceKernel kernel(text.finish({y}));
      EXPECT_EQ(kernel.plan().strategy, rows == 3 ? "skinny_gemm" : "contraction");
      const Tensor a = randomIntegers({rows, 72}, 0, 60), b = randomIntegers({50, 72}, 0, 60);
      const Tensor got = kernel.run({1}, {a, b})[0];
      for (int64_t i = 0; i < rows * 50; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < 72; ++k)
          sum += a.values[i / 50 * 72 + k] * b.values[i % 50 * 72 + k];
        ASSERT_EQ(got.values[i], sum);
      }
    }
}

TEST(CudaContraction, WhatComesBeforeAndAfter) {
  // ((x + u) w^T * gate + residual), also transposed.
  for (bool isTransposed : {false, true}) {
    KernelText text({{1, 70}});
    std::string wide = text.type({"s0", "44"}), narrow = text.type({"s0", "36"});
    std::string stored = isTransposed ? text.type({"44", "s0"}) : wide;
    Value x = text.argument(narrow), u = text.argument(narrow), w = text.argument(text.type({"44", "36"}));
    Value gate = text.argument(wide), residual = text.argument(stored);
    Value sum = text.one("pp", {x, u}, narrow, {"a, b", "a, b", "a, b"},
                         "%s = arith.addf %x0, %x1 : f32\nlinalg.yield %s : f32");
    Value product = text.reduce("ppr", {sum, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd);
    const std::string out = isTransposed ? "b, a" : "a, b";
    Value y = text.one("pp", {product, gate, residual}, stored, {"a, b", "a, b", out, out},
                       "%s = arith.mulf %x0, %x1 : f32\n%t = arith.addf %s, %x2 : f32\nlinalg.yield %t : f32");
    std::string finished = text.finish({y}, "kiln.inplace = array<i64: 4>");
    DeviceKernel kernel(finished);
    expectTiles(kernel);
    EXPECT_EQ(kernel.plan().launches.size(), 1U);
    for (int64_t m : {1, 33, 70})
      kernel.check({m}, randomInputs(finished, {m}), 1e-5);
  }
}

TEST(CudaContraction, LeavesOthersAlone) {
  // Rejected: a strict order, a reduction with another initial value, the product of a tensor with itself, columns that
  // are not innermost.
  auto strategyOf = [](const std::string &start, const std::string &body, const std::vector<std::string> &maps) {
    KernelText text({{1, 40}});
    Value x = text.argument(text.type({"s0", "20"})), w = text.argument(text.type({"s0", "20"}));
    std::string type = maps[2] == "a" ? text.type({"s0"}) : text.type({"s0", "s0"});
    Value sum = text.reduce(maps[2] == "a" ? "pr" : "ppr", {x, w}, type, maps, start, body);
    return DeviceKernel(text.finish({sum})).plan().strategy;
  };
  const std::vector<std::string> maps{"a, c", "b, c", "a, b"};
  EXPECT_EQ(strategyOf("0.0 : f32", multiplyAdd, maps), "contraction");
  EXPECT_EQ(strategyOf("1.0 : f32", multiplyAdd, maps), "loops");
  EXPECT_EQ(strategyOf("0.0 : f32", multiplyAdd, {"a, b", "a, b", "a"}), "rows");
  std::string strict = multiplyAdd, squared = multiplyAdd;
  strict.insert(strict.find(" : f32"), " {kiln.strict}");
  squared.replace(squared.find("%x1"), 3, "%x0");
  EXPECT_EQ(strategyOf("0.0 : f32", strict, maps), "loops");
  EXPECT_EQ(strategyOf("0.0 : f32", squared, maps), "loops");
}

//===- Search space ------------------------------------------------------===//

TEST(CudaContraction, EndsOfTheSearchSpace) {
  for (auto [form, n, k, rows] :
       {std::tuple(Form{false, true}, 132, 76, 70), std::tuple(Form{false, false}, 70, 37, 33),
        std::tuple(Form{true, false}, 132, 36, 132), std::tuple(Form{false, true}, 35, 68, 3),
        std::tuple(Form{false, false}, 70, 37, 5)}) {
    std::string text =
        rows == 3 ? linearKernel(n, k, "", 8) : matmulKernel(form, number(rows), number(n), number(k), 1);
    const SearchSpace space = spaceOf(text);
    for (const ScheduleConfig &config : endsOf(space)) {
      SCOPED_TRACE(toString(config) + " of " + number(n) + " x " + number(k));
      DeviceKernel kernel(text, &config);
      EXPECT_EQ(kernel.plan().schedule, config);
      EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
      const std::vector<int64_t> symbols = rows == 3 ? std::vector<int64_t>{rows} : std::vector<int64_t>{1, 0, 1};
      kernel.check(symbols, randomInputs(text, symbols), 1e-5);
    }
  }
}

TEST(CudaContraction, OffsetsOf64Bits) {
  // The bound of the rows gives tensors more elements than 32-bit integers can count.
  std::string text = linearKernel(64, 40, "", 100000000);
  DeviceKernel kernel(text);
  expectTiles(kernel);
  kernel.check({37}, randomInputs(text, {37}), 1e-5);
}

TEST(CudaContraction, RefusesWhatDoesNotFit) {
  const std::string text = linearKernel(512, 512, "", 512);
  ScheduleConfig threads{{"bm", 128}, {"bn", 128}, {"tm", 4}, {"tn", 4}},
      shared{{"bm", 128}, {"bn", 128}, {"tm", 8}, {"tn", 8}, {"bk", 32}};
  auto expectRule = [&](const ScheduleConfig &config, const std::string &rule) {
    EXPECT_EQ(refusal(text, &config).find("contraction schedule: invalid combination; expected " + rule), 0U)
        << refusal(text, &config);
  };
  expectRule(threads, "64 to 512 threads");
  expectRule(shared, "99 KiB of shared memory");
}

//===- Code --------------------------------------------------------------===//

TEST(CudaContraction, InnerLoopIsFusedMultiplyAdds) {
  // 8 x 8 accumulators per thread and eight K steps; one barrier per stage, and two around the transfer of the sums to
  // the epilogue.
  DeviceKernel kernel(linearKernel(2048, 512, "", 2048));
  expectTiles(kernel);
  EXPECT_EQ(toString(kernel.plan().schedule), "bk=16 bm=128 bn=128 split_k=1 stages=3 stream_k=0 tm=8 tn=8");
  EXPECT_EQ(countOf(textOf(kernel), "fma.rn.f32"), 512U);
  EXPECT_EQ(countOf(textOf(kernel), "ld.shared.v4"), 32U);
  EXPECT_EQ(countOf(textOf(kernel), "bar.sync") + countOf(textOf(kernel), "barrier.sync"), 3U);
  EXPECT_EQ(countOf(textOf(kernel), "cp.async.wait_group"), 2U);
}

} // namespace
} // namespace kiln::testing
