// SPDX-License-Identifier: Apache-2.0
//
// A weight that is large enough for shape-specialised kernel variants for fewer rows on a GPU; attention with a variant
// for a single sequence; and a block whose attention has bf16 heads of 64.
#pragma once

#include "kiln/dsl.h"

namespace specs {

struct RowForms : kiln::Model {
  static constexpr kiln::Dim rows{"rows", 1, 4096};
  static constexpr std::int64_t in = 1536, out = 192;

  kiln::Linear<in, out, true, kiln::WeightOrder::out_in, kiln::bf16> linear{"linear"};

  constexpr auto forward(kiln::Tensor<kiln::bf16, rows, in> x) const { return kiln::relu(linear(x)); }

  static constexpr kiln::Dim batch{"batch", 1, 2}, tokens{"tokens", 1, 200};
  static constexpr std::int64_t width = 16;

  constexpr auto attend(kiln::Tensor<kiln::f32, batch, tokens, width> x) const { return kiln::attention<2>(x, x, x); }

  kiln::EncoderBlock<128, 2, 128, kiln::BlockOptions{.causal = true, .weight = kiln::bf16}> block{"block"};

  constexpr auto encode(kiln::Tensor<kiln::bf16, tokens, 128> x) const { return block(x, kiln::causal); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &RowForms::forward, {"x"}, {"y"}),
                      kiln::entry("attend", &RowForms::attend, {"x"}, {"y"}),
                      kiln::entry("encode", &RowForms::encode, {"x"}, {"y"})};
  }
};

} // namespace specs
