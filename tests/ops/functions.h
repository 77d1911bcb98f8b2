// SPDX-License-Identifier: Apache-2.0
//
// The unary functions whose errors are tested against dsl/SPEC.md, and what they are in f64. The expressions are for
// double and for Lanes, several doubles with the same operations (lanes.h).
#pragma once

#include <cmath>
#include <numbers>

namespace kiln::testing::oracle {

using std::erfc, std::exp, std::expm1, std::fabs, std::log, std::log1p, std::sqrt, std::tanh;

inline double select(bool condition, double a, double b) { return condition ? a : b; }

template <class T> T logistic(T x) {
  const T power = exp(-fabs(x));
  return select(x < T(0), power, T(1)) / (T(1) + power);
}
/// Returns NaN at -infinity, where the value is a product of infinity and 0.
template <class T> T aboveMinusInfinity(T x, T value) { return select(x == T(-HUGE_VAL), T(std::nan("")), value); }
template <class T> T silu(T x) { return aboveMinusInfinity(x, x * logistic(x)); }
template <class T> T softplus(T x) { return select(x < T(0), T(0), x) + log1p(exp(-fabs(x))); }
template <class T> T gelu(T x) { return aboveMinusInfinity(x, x / T(2) * erfc(-x / T(std::numbers::sqrt2))); }
template <class T> T geluTanh(T x) {
  const T doubled = T(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi) * (x + T(0.044715) * x * x * x);
  return aboveMinusInfinity(x, x * logistic(doubled));
}

} // namespace kiln::testing::oracle

// F(function of the DSL, the same for x in f64, bound in units in the last place, absolute bound)
// clang-format off
#define KILN_TEST_FUNCTIONS(F)                                                                                         \
  F(exp,        exp(x),                                 2,   0),                                                       \
  F(log,        log(x),                                 2,   0),                                                       \
  F(sqrt,       sqrt(x),                                0.5, 0),                                                       \
  F(rsqrt,      T(1) / sqrt(x),                         2,   0),                                                       \
  F(tanh,       tanh(x),                                3,   0),                                                       \
  F(sigmoid,    logistic(x),                            3,   0x1p-126),                                                \
  F(silu,       silu(x),                                4,   0x1p-119),                                                \
  F(softplus,   softplus(x),                            4,   0),                                                       \
  F(gelu,       gelu(x),                                4,   1e-6),                                                    \
  F(gelu_tanh,  geluTanh(x),                            4,   1e-6),                                                    \
  F(elu,        select(T(0) < x, x, expm1(x)),          4,   0),                                                       \
  F(leaky_relu, select(T(0) < x, x, T(0.01) * x),       1,   0)
// clang-format on
