// SPDX-License-Identifier: Apache-2.0
//
// The character model of examples/char_gpt, for any vocabulary: pre-norm blocks, learned positions, tied logits.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim characters_256{"characters", 1, 256};

template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Vocabulary> struct CharGpt : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  static constexpr kiln::BlockOptions options{.activation = kiln::Activation::gelu_tanh, .causal = true};
  kiln::Embedding<Vocabulary, Width> wte{"wte"};
  kiln::Embedding<256, Width> wpe{"wpe"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, 4 * Width, options>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, characters_256> tokens) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::logits(ln_f(h(x)), wte);
  }
};

} // namespace specs
