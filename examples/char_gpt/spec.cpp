// SPDX-License-Identifier: Apache-2.0
//
// A character GPT: pre-norm blocks, learned positions, the output weights tied to the embedding (Radford et al. 2019).
#include "vocabulary.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 256};

template <int Layers, int Width, int Heads> struct CharGpt : kiln::Model {
  static constexpr int characters = static_cast<int>(char_gpt::vocabulary.size());
  static constexpr kiln::Names inputs{"tokens"};
  static constexpr kiln::Names outputs{"logits"};
  static constexpr kiln::BlockOptions options{.activation = kiln::Activation::gelu_tanh, .causal = true};

  kiln::Embedding<characters, Width> wte{"wte"};
  kiln::Embedding<256, Width> wpe{"wpe"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, 4 * Width, options>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, T> tokens) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::logits(ln_f(h(x)), wte);
  }
};

KILN_MODEL(char_gpt, CharGpt<4, 128, 4>)
