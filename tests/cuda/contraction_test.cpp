// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices in tiles: their loops in all orders, odd extents, what comes before and behind them, addresses
// that are no multiples of 16, every end of the search space; and what the inner loop consists of.
#include "DeviceKernel.h"
#include "KernelText.h"
#include "LinearKernel.h"
#include "compiler/schedule/SearchSpace.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// The maps of a product's inputs, by whether each is transposed: rows a, columns b, depth c.
struct Form {
  bool transposeA, transposeB;
  std::vector<std::string> maps() const { return {transposeA ? "c, a" : "a, c", transposeB ? "b, c" : "c, b", "a, b"}; }
};

/// x * w with `k` at run time (s1) or not.
std::string matmulKernel(Form form, const std::string &m, const std::string &n, const std::string &k, int bound) {
  KernelText text({{1, bound}, {0, bound}, {1, bound}});
  Value x = text.argument(form.transposeA ? text.type({k, m}) : text.type({m, k}));
  Value w = text.argument(form.transposeB ? text.type({n, k}) : text.type({k, n}));
  return text.finish({text.reduce("ppr", {x, w}, text.type({m, n}), form.maps(), "0.0 : f32", multiplyAdd)});
}

size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++count;
  return count;
}

const std::string &textOf(const DeviceKernel &kernel) { return kernel.plan().images.front().text; }

/// Wants the strategy, and no local memory.
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

TEST(CudaContraction, InnerLoopIsFusedMultiplyAdds) {
  // 8 x 8 sums of a thread and eight steps of the depth; a barrier a stage, and two around the sums' way to the
  // epilogue.
  DeviceKernel kernel(linearKernel(2048, 512, "", 2048));
  expectTiles(kernel);
  EXPECT_EQ(toString(kernel.plan().schedule), "bk=16 bm=128 bn=128 stages=3 tm=8 tn=8");
  EXPECT_EQ(countOf(textOf(kernel), "fma.rn.f32"), 512U);
  EXPECT_EQ(countOf(textOf(kernel), "ld.shared.v4"), 32U);
  EXPECT_EQ(countOf(textOf(kernel), "bar.sync") + countOf(textOf(kernel), "barrier.sync"), 3U);
  EXPECT_EQ(countOf(textOf(kernel), "cp.async.wait_group"), 2U);
}

} // namespace
} // namespace kiln::testing
