// SPDX-License-Identifier: Apache-2.0
//
// The unary functions whose errors are tested against dsl/SPEC.md, and what they are in f64.
#pragma once

#include <cmath>
#include <numbers>

namespace kiln::testing {

inline double inverseRoot(double x) { return 1 / std::sqrt(x); }
inline double logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
inline double siluOf(double x) { return x == -HUGE_VAL ? std::nan("") : x * logistic(x); }
inline double softplusOf(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0);
}
inline double geluOf(double x) { return x == -HUGE_VAL ? std::nan("") : x / 2 * std::erfc(-x / std::sqrt(2.0)); }
inline double geluTanhOf(double x) {
  return x == -HUGE_VAL ? std::nan("") : x * logistic(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
inline double eluOf(double x) { return x > 0 ? x : std::expm1(x); }
inline double leakyReluOf(double x) { return x > 0 ? x : 0.01 * x; }

} // namespace kiln::testing

// F(function of the DSL, the same in f64, bound in units in the last place, absolute bound)
// clang-format off
#define KILN_TEST_FUNCTIONS(F)                                                                                         \
  F(exp,       std::exp,    2,   0),                                                                                   \
  F(log,       std::log,    2,   0),                                                                                   \
  F(sqrt,      std::sqrt,   0.5, 0),                                                                                   \
  F(rsqrt,     inverseRoot, 2,   0),                                                                                   \
  F(tanh,      std::tanh,   3,   0),                                                                                   \
  F(sigmoid,   logistic,    3,   0x1p-126),                                                                            \
  F(silu,      siluOf,      4,   0x1p-119),                                                                            \
  F(softplus,  softplusOf,  4,   0),                                                                                   \
  F(gelu,      geluOf,      4,   1e-6),                                                                                \
  F(gelu_tanh, geluTanhOf,  4,   1e-6),                                                                                \
  F(elu,       eluOf,       4,   0),                                                                                   \
  F(leaky_relu, leakyReluOf, 1, 0)
// clang-format on
