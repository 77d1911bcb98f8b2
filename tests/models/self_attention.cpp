// SPDX-License-Identifier: Apache-2.0
// Self-attention without positions: with weights, bare as in the worked numbers, and of long sequences.
#include <kiln/generator.h>

inline constexpr kiln::Dim N{"n", 1, 40};
inline constexpr kiln::Dim Long{"length", 1, 32768};

struct SelfAttention : kiln::Model {
  kiln::MultiHeadAttention<24, 3> attn{"attn"};

  constexpr auto project(kiln::Tensor<kiln::f32, N, 24> x) const { return attn(x); }

  constexpr auto worked(kiln::Tensor<kiln::f32, N, 2> x) const {
    auto scores = kiln::matmul(x, kiln::transpose<1, 0>(x)) / kiln::square_root(2);
    auto weights = kiln::softmax(scores);
    return kiln::outputs(scores, weights, kiln::matmul(weights, x), kiln::attention<1>(x, x, x));
  }

  /// Two heads of 33.
  constexpr auto long_full(kiln::Tensor<kiln::f32, Long, 66> x) const { return kiln::attention<2>(x, x, x); }
  constexpr auto long_causal(kiln::Tensor<kiln::f32, Long, 66> x) const {
    return kiln::attention<2>(x, x, x, kiln::causal);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("project", &SelfAttention::project, {"x"}, {"y"}),
                      kiln::entry("worked", &SelfAttention::worked, {"x"}, {"scores", "weights", "by_hand", "y"}),
                      kiln::entry("long_full", &SelfAttention::long_full, {"x"}, {"y"}),
                      kiln::entry("long_causal", &SelfAttention::long_causal, {"x"}, {"y"})};
  }
};

KILN_MODEL(self_attention, SelfAttention)
