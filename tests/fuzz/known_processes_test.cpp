// SPDX-License-Identifier: Apache-2.0
//
// What random models of several ranks have found.
#include "known.h"

namespace kiln::fuzz {
namespace {

#define KNOWN_RANKS(name, ...)                                                                                         \
  struct name : Model {                                                                                                \
    constexpr auto forward __VA_ARGS__                                                                                 \
  };                                                                                                                   \
  TEST(KnownProcesses, name) { expectTrialRight<name>({.ranks = {.ranks = 2}}, &Verdict::together); }

// A weight without rows is no table.
KNOWN_RANKS(
    ScalarWeight, (Tensor<f32, 3, 4> x) const {
      auto hidden = linear(x, parameter<f32, 6, 4>(x, "up"));
      return linear(hidden * parameter<f32>(x, "scale"), parameter<f32, 4, 6>(x, "down"));
    })

// A value that is its own weight is summed once.
KNOWN_RANKS(
    OwnWeight, (Tensor<f32, 1, 3> x) const {
      auto w = parameter<f32, 2, 8>(x, "w");
      return kiln::outputs(linear(w, w), linear(linear(x, parameter<f32, 8, 3>(x, "up")), w));
    })

// Communicators on hosts have no sums of short floats.
KNOWN_RANKS(
    SumsOfBf16, (Tensor<bf16, 3, 4> x) const {
      auto hidden = gelu(linear(x, parameter<bf16, 6, 4>(x, "up")));
      return linear(hidden, parameter<bf16, 4, 6>(x, "down"), parameter<bf16, 4>(x, "bias"));
    })
// The sum is rounded behind its bias, not before.
KNOWN_RANKS(
    BiasOfBf16, (Tensor<bf16, 4, 16> x) const {
      auto w = parameter<bf16, 16, 2>(x, "w");
      auto sums = linear(w, parameter<bf16, 64, 2>(x, "down"), parameter<bf16, 64>(x, "bias"));
      return kiln::outputs(sums, linear(linear<WeightOrder::in_out>(x, w), w));
    })
KNOWN_RANKS(
    RowsOfF16, (Tensor<i32, 5> words) const {
      auto table = parameter<f16, 16, 3>(words, "table");
      auto hidden = relu(linear(embedding(words, table), parameter<f16, 4, 3>(words, "up")));
      return linear(linear(hidden, parameter<f16, 3, 4>(words, "down")), table);
    })

} // namespace
} // namespace kiln::fuzz
