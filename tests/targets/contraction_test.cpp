// SPDX-License-Identifier: Apache-2.0
//
// Contractions against a loop in f64: rows below, at and above the register tile, columns that are no multiple of a vector, weights in
// tiles and dense, epilogues, several results, batches.
#include "Harness.h"
#include <gtest/gtest.h>
#include <cmath>

namespace kiln::testing {
namespace {

const std::string maps = R"(
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = affine_map<(m, n) -> (m, n)>
#b = affine_map<(m, n) -> (n)>
)";

std::string number(int64_t n) { return std::to_string(n); }

/// relu?(x w^T + bias) + residual with run-time rows; `layout` is the encoding of w, "" for dense.
std::string linearKernel(int64_t n, int64_t k, const std::string &layout) {
  std::string x = "tensor<?x" + number(k) + "xf32, affine_map<()[s0] -> (s0, " + number(k) + ")>>";
  std::string y = "tensor<?x" + number(n) + "xf32, affine_map<()[s0] -> (s0, " + number(n) + ")>>";
  std::string w = "tensor<" + number(n) + "x" + number(k) + "xf32" + (layout.empty() ? "" : ", " + layout) + ">";
  std::string b = "tensor<" + number(n) + "xf32>";
  return maps + "func.func @f(%s: index, %x: " + x + ", %w: " + w + ", %b: " + b + ", %r: " + y + ") -> " + y + R"(
    attributes {kiln.kernel, kiln.bounds = array<i64: 1, 256>, kiln.inplace = array<i64: 3>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%s) : )" + y + R"(
  %i = linalg.fill ins(%zero : f32) outs(%e : )" + y + ") -> " + y + R"(
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : )" + x + ", " + w + ") outs(%i : " + y + R"() {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s1 = arith.addf %o, %m : f32
    linalg.yield %s1 : f32
  } -> )" + y + R"(
  %q = linalg.generic {indexing_maps = [#e, #b, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%p, %b, %r : )" + y + ", " + b + ", " + y + ") outs(%e : " + y + R"() {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    %u = arith.maximumf %t, %zero : f32
    %v = arith.addf %u, %d : f32
    linalg.yield %v : f32
  } -> )" + y + "\n  return %q : " + y + "\n}";
}

Tensor linear(const Tensor &x, const Tensor &w, const Tensor &b, const Tensor &r) {
  Tensor y = Tensor::zeros(r.shape);
  for (int64_t m = 0; m < x.shape[0]; ++m)
    for (int64_t n = 0; n < w.shape[0]; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < x.shape[1]; ++k)
        sum += x.values[m * x.shape[1] + k] * w.values[n * x.shape[1] + k];
      y.at({m, n}) = std::max(sum + b.at({n}), 0.0) + r.at({m, n});
    }
  return y;
}

void checkLinear(Kernel &kernel, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE("rows " + number(m) + " columns " + number(n) + " depth " + number(k));
  Tensor x = randomTensor({m, k}), w = randomTensor({n, k}), b = randomTensor({n}), r = randomTensor({m, n});
  Tensor expected = linear(x, w, b, r);
  expectClose(kernel.run({m}, {x, w, b, r})[0], expected);
  expectClose(kernel.run({m}, {x, w, b, r}, /*aliased=*/3)[0], expected);
}

class Contraction : public ::testing::TestWithParam<std::string> {};

TEST_P(Contraction, RunTimeRows) {
  int64_t tile = createCpuTarget(GetParam())->weightTile(96, 64);
  Kernel kernel(linearKernel(96, 64, "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
  EXPECT_EQ(kernel.object().strategy, "contraction");
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 100, 128, 197, 256})
    checkLinear(kernel, m, 96, 64);
}

TEST_P(Contraction, ColumnsAndDepths) {
  int64_t tile = createCpuTarget(GetParam())->weightTile(96, 64);
  for (int64_t n : {1, 47, 48, 49, 768})
    for (int64_t k : {1, 7, 64})
      for (std::string layout : {"", "tiled"}) {
        SCOPED_TRACE(layout);
        Kernel kernel(linearKernel(n, k, layout.empty() ? "" : "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
        for (int64_t m : {1, 9})
          checkLinear(kernel, m, n, k);
      }
}

TEST_P(Contraction, LongDepths) {
  int64_t tile = createCpuTarget(GetParam())->weightTile(96, 64);
  for (int64_t k : {768, 3072}) {
    Kernel kernel(linearKernel(49, k, "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
    for (int64_t m : {1, 7, 8, 13})
      checkLinear(kernel, m, 49, k);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Contraction, ::testing::ValuesIn(runnableTargets()), [](const auto &info) {
  return "v" + info.param.substr(8);
});

} // namespace
} // namespace kiln::testing
