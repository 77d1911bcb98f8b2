// SPDX-License-Identifier: Apache-2.0
//
// The unary functions whose errors are tested against dsl/SPEC.md, and what they are in f64. The expressions are for
// double and for Lanes, several doubles with the same operations (lanes.h).
#pragma once

#include "angles.h"

#include <cmath>
#include <numbers>

namespace kiln::testing::oracle {

using std::erf, std::erfc, std::exp, std::expm1, std::fabs, std::log, std::log1p, std::sqrt, std::tanh;

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
/// Returns infinity where e^|x| is beyond the range of f32.
template <class T> T sinh(T x) {
  return select(T(88.7228355) < fabs(x), x * T(HUGE_VAL), (expm1(x) - expm1(-x)) / T(2));
}
template <class T> T cosh(T x) { return select(T(88.7228355) < fabs(x), T(HUGE_VAL), (exp(x) + exp(-x)) / T(2)); }
template <class T> T mish(T x) { return aboveMinusInfinity(x, x * tanh(softplus(x))); }
template <class T> T hardSigmoid(T x) {
  const T raised = select(x < T(-3), T(0), x + T(3));
  return select(T(6) < raised, T(6), raised) / T(6);
}

} // namespace kiln::testing::oracle

// F(function of the DSL, the same for x in f64, bound in units in the last place, absolute bound): one list for each
// entry of ops_functions.cpp.
// clang-format off
#define KILN_TEST_BASIC_FUNCTIONS(F)                                                                                   \
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
  F(elu,        select(T(0) < x, x, expm1(x)),          2,   0),                                                       \
  F(leaky_relu, select(T(0) < x, x, T(0.01) * x),       1,   0)
#define KILN_TEST_ANALYTIC_FUNCTIONS(F)                                                                                \
  F(sin,        sin(x),                                 2,   3e-8),                                                    \
  F(cos,        cos(x),                                 2,   3e-8),                                                    \
  F(erf,        erf(x),                                 9,   0),                                                       \
  F(expm1,      expm1(x),                               2,   0),                                                       \
  F(log1p,      log1p(x),                               2,   0),                                                       \
  F(sinh,       sinh(x),                                3,   0),                                                       \
  F(cosh,       cosh(x),                                3,   0),                                                       \
  F(log2,       log(x) * T(std::numbers::log2e),        3,   0),                                                       \
  F(log10,      log(x) * T(std::numbers::log10e),       3,   0),                                                       \
  F(reciprocal, T(1) / x,                               1,   0)
#define KILN_TEST_ACTIVATIONS(F)                                                                                       \
  F(mish,         mish(x),                              5,   0x1p-126),                                                \
  F(selu,         T(1.0507009873554805) * select(T(0) < x, x, T(1.6732632423543772) * expm1(x)), 4, 0),                \
  F(log_sigmoid,  -softplus(-x),                        4,   0),                                                       \
  F(hard_sigmoid, hardSigmoid(x),                       2,   0),                                                       \
  F(hard_swish,   x * hardSigmoid(x),                   3,   0),                                                       \
  F(softsign,     x / (T(1) + fabs(x)),                 2,   0)
#define KILN_TEST_FUNCTIONS(F)                                                                                         \
  KILN_TEST_BASIC_FUNCTIONS(F), KILN_TEST_ANALYTIC_FUNCTIONS(F), KILN_TEST_ACTIVATIONS(F)
// clang-format on
