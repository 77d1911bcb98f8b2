// SPDX-License-Identifier: Apache-2.0
//
// A character GPT: pre-norm blocks, learned positions, the output weights tied to the embedding (Radford et al. 2019).
#pragma once

#include "kiln/dsl.h"
#include "vocabulary.h"

inline constexpr kiln::Dim T{"tokens", 1, 256}, C{"context", T, 256};

template <int Layers, int Width, int Heads> struct CharGpt : kiln::Model {
  static constexpr int characters = static_cast<int>(char_gpt::vocabulary.size());
  static constexpr kiln::BlockOptions options{.activation = kiln::Activation::gelu_tanh, .causal = true};

  kiln::Embedding<characters, Width> wte{"wte"};
  kiln::Embedding<256, Width> wpe{"wpe"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, 4 * Width, options>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, T> tokens) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::logits(ln_f(h(x)), wte);
  }

  // Text generation with a KV cache that persists between calls; returns the logits of the next character only.
  constexpr auto extend(const kiln::tensor auto &tokens) const {
    auto x = h(wte(tokens) + wpe(kiln::positions_in<C>(tokens)), kiln::cached<C>);
    return kiln::logits(ln_f(kiln::last<0, 1>(x)), wte);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, T> tokens) const { return extend(tokens); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return extend(token); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &CharGpt::forward, {"tokens"}, {"logits"}),
                      kiln::entry("prefill", &CharGpt::prefill, {"tokens"}, {"logits"}).batched(32),
                      kiln::entry("decode", &CharGpt::decode, {"token"}, {"logits"}).batched(32)};
  }
};
