// SPDX-License-Identifier: Apache-2.0
//
// A linear layer with an epilogue as a kernel, and its reference.
#pragma once

#include "Harness.h"
#include "KernelText.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {

inline std::string number(int64_t n) { return std::to_string(n); }

inline const std::string multiplyAdd =
    "%m = arith.mulf %x0, %x1 : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";

/// Returns max(x w^T + bias, 0) + residual with `least` to `bound` rows; the residual may be overwritten. `layout` is
/// that of w, "" for dense.
inline std::string linearKernel(int64_t n, int64_t k, const std::string &layout, int bound = 256, int least = 1) {
  KernelText text({{least, bound}});
  std::string wide = text.type({"s0", number(n)});
  Value x = text.argument(text.type({"s0", number(k)}));
  Value w = text.argument(layout.empty() ? text.type({number(n), number(k)}) : KernelText::tiled(n, k, layout));
  Value b = text.argument(text.type({number(n)})), r = text.argument(wide);
  Value product = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd);
  Value y = text.one("pp", {product, b, r}, wide, {"a, b", "b", "a, b", "a, b"},
                     "%z = arith.constant 0.0 : f32\n%t = arith.addf %x0, %x1 : f32\n%u = arith.maximumf %t, %z : f32\n"
                     "%v = arith.addf %u, %x2 : f32\nlinalg.yield %v : f32");
  return text.finish({y}, "kiln.inplace = array<i64: 3>");
}

/// Returns max((x w^T) scales + bias, 0) with exactly the roundings of the separate ops. x is i8; `layout` is that of
/// w.
inline std::string int8Kernel(int64_t n, int64_t k, const std::string &layout, int bound, int least = 1) {
  KernelText text({{least, bound}});
  const std::string wide = text.type({"s0", number(n)});
  Value x = text.argument(text.type({"s0", number(k)}, "i8")), scales = text.argument(text.type({"s0"}));
  Value w = text.argument(KernelText::tiled(int(n), int(k), layout)), b = text.argument(text.type({number(n)}));
  Value product = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32",
                              "%f = arith.sitofp %x0 : i8 to f32\n%m = arith.mulf %f, %x1 : f32\n"
                              "%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
  Value y = text.one("pp", {product, scales, b}, wide, {"a, b", "a", "b", "a, b"},
                     "%z = arith.constant 0.0 : f32\n%t = arith.mulf %x0, %x1 {kiln.strict} : f32\n"
                     "%u = arith.addf %t, %x2 {kiln.strict} : f32\n%v = arith.maximumf %u, %z : f32\n"
                     "linalg.yield %v : f32");
  return text.finish({y});
}

/// Returns the results of linearKernel, with products added in order of K.
Tensor linear(const Tensor &x, const Tensor &w, const Tensor &b, const Tensor &r);

inline void checkLinear(Kernel &kernel, int64_t m, const Tensor &w) {
  const int64_t n = w.shape[0], k = w.shape[1];
  SCOPED_TRACE("rows " + number(m) + " columns " + number(n) + " K " + number(k));
  Tensor x = randomTensor({m, k}), b = randomTensor({n}), r = randomTensor({m, n});
  Tensor expected = linear(x, w, b, r);
  expectClose(kernel.run({m}, {x, w, b, r})[0], expected, 1e-5, false, 1);
  expectClose(kernel.run({m}, {x, w, b, r}, /*aliased=*/3)[0], expected, 1e-5, false, 1);
}

inline void checkLinear(Kernel &kernel, int64_t m, int64_t n, int64_t k) {
  checkLinear(kernel, m, randomTensor({n, k}));
}

} // namespace kiln::testing
