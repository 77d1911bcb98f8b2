// SPDX-License-Identifier: Apache-2.0
// Self-attention without positions: with weights, and bare as in the worked numbers.
#include <kiln/generator.h>

inline constexpr kiln::Dim N{"n", 1, 40};

struct SelfAttention : kiln::Model {
  kiln::MultiHeadAttention<24, 3> attn{"attn"};

  constexpr auto project(kiln::Tensor<kiln::f32, N, 24> x) const { return attn(x); }

  constexpr auto worked(kiln::Tensor<kiln::f32, N, 2> x) const {
    auto scores = kiln::matmul(x, kiln::transpose<1, 0>(x)) / kiln::square_root(2);
    auto weights = kiln::softmax(scores);
    return kiln::outputs(scores, weights, kiln::matmul(weights, x), kiln::attention<1>(x, x, x));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("project", &SelfAttention::project, {"x"}, {"y"}),
                      kiln::entry("worked", &SelfAttention::worked, {"x"}, {"scores", "weights", "by_hand", "y"})};
  }
};

KILN_MODEL(self_attention, SelfAttention)
