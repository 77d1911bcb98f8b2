// SPDX-License-Identifier: Apache-2.0
//
// GEMM kernels of all types, compared with a loop in f64 over the rounded inputs. Products of two tensor-core operands
// are exact in f32, so that the tolerance covers only the error of f32 sums: an ulp of the sum of all magnitudes for
// each step of the K loop.
#pragma once

#include "ProductKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {

/// The operand type: "f16", "bf16", "tf32", which is f32 in memory, or "f32", on CUDA cores.
inline std::string inMemory(const std::string &type) { return type == "tf32" ? "f32" : type; }

double rounded(double value, const std::string &type);

/// Returns the body of x0 * x1 + y0 in f32.
inline std::string bodyOf(const std::string &type) {
  if (inMemory(type) == "f32")
    return multiplyAdd;
  const std::string to = " : " + type + " to f32\n";
  return "%p = arith.extf %x0" + to + "%q = arith.extf %x1" + to +
         "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";
}

inline std::string attributesOf(const std::string &type) { return type == "tf32" ? "kiln.tf32" : ""; }

/// Returns x * w, with an index argument s0 of 1 to 200, and s1 and s2 with similar bounds.
inline std::string productKernel(const std::string &type, Form form, const std::string &m, const std::string &n,
                                 const std::string &k) {
  KernelText text({{1, 200}, {0, 200}, {1, 200}});
  const std::string element = inMemory(type);
  Value x = text.argument(form.transposeA ? text.type({k, m}, element) : text.type({m, k}, element));
  Value w = text.argument(form.transposeB ? text.type({n, k}, element) : text.type({k, n}, element));
  return text.finish({text.reduce("ppr", {x, w}, text.type({m, n}), form.maps(), "0.0 : f32", bodyOf(type))},
                     attributesOf(type));
}

/// The result of a GEMM, and the tolerance of each element.
struct Expected {
  Tensor sums, allowed;
};

Expected productOf(const Tensor &x, const Tensor &w, Form form, const std::string &type);

inline void expectNear(const Tensor &got, const Expected &expected) {
  ASSERT_EQ(got.shape, expected.sums.shape);
  for (size_t i = 0; i < got.values.size(); ++i)
    ASSERT_LE(std::abs(got.values[i] - expected.sums.values[i]), expected.allowed.values[i])
        << "element " << i << ": got " << got.values[i] << ", expected " << expected.sums.values[i];
}

inline void checkProduct(DeviceKernel &kernel, const std::string &type, Form form, const std::vector<int64_t> &symbols,
                         int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(type + " " + form.maps()[0] + " " + form.maps()[1] + " of " + number(m) + " x " + number(n) + " x " +
               number(k));
  using Shape = std::vector<int64_t>;
  const Tensor x = randomTensor(form.transposeA ? Shape{k, m} : Shape{m, k}),
               w = randomTensor(form.transposeB ? Shape{n, k} : Shape{k, n});
  expectNear(kernel.run(symbols, {x, w})[0], productOf(x, w, form, type));
}

} // namespace kiln::testing
