// SPDX-License-Identifier: Apache-2.0
//
// Self-attention of 12 heads of 64, without its projections.
#include <kiln/generator.h>

inline constexpr kiln::Dim tokens{"tokens", 1, 512};

struct Attention : kiln::Model {
  static constexpr kiln::Names inputs{"q", "k", "v"}, outputs{"y"};
  using Rows = kiln::Tensor<kiln::f32, tokens, 768>;

  constexpr auto forward(Rows q, Rows k, Rows v) const { return kiln::attention<12>(q, k, v); }
};

KILN_MODEL(attention, Attention)
