// SPDX-License-Identifier: Apache-2.0
// Self-attention over long sequences, with two heads of width 33.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"length", 1, 32768};

struct LongAttention : kiln::Model {
  using Rows = kiln::Tensor<kiln::f32, T, 66>;

  constexpr auto full(Rows x) const { return kiln::attention<2>(x, x, x); }
  constexpr auto causal(Rows x) const { return kiln::attention<2>(x, x, x, kiln::causal); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("full", &LongAttention::full, {"x"}, {"y"}),
                      kiln::entry("causal", &LongAttention::causal, {"x"}, {"y"})};
  }
};

KILN_MODEL(long_attention, LongAttention)
