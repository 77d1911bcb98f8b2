// SPDX-License-Identifier: Apache-2.0
//
// A small Transformer in f16 and in bf16: embeddings, two pre-norm blocks, tied logits; over all tokens at once, and
// with a KV cache. Its widths are not multiples of a tile.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim half_tokens{"tokens", 1, 40}, half_context{"context", half_tokens, 40};

template <kiln::ElementType E> struct HalfTransformer : kiln::Layer<HalfTransformer<E>> {
  using kiln::Layer<HalfTransformer<E>>::Layer;
  static constexpr std::int64_t width = 36, vocabulary = 53;
  kiln::Embedding<vocabulary, width, E> words{"words"};
  kiln::Stack<2, kiln::EncoderBlock<width, 3, 4 * width, kiln::BlockOptions{.causal = true, .weight = E}>> h{"h"};
  kiln::LayerNorm<width, E> norm{"norm"};

  constexpr auto forward(const kiln::tensor auto &tokens, const kiln::tensor auto &positions,
                         const auto &options) const {
    auto places = kiln::cast<E>(kiln::sinusoidal<width>(positions));
    return kiln::logits(norm(h(words(tokens) * 4 + places, options)), words);
  }
  constexpr auto all(const kiln::tensor auto &tokens) const {
    return (*this)(tokens, kiln::positions(tokens), kiln::causal);
  }
  constexpr auto step(const kiln::tensor auto &tokens) const {
    return (*this)(tokens, kiln::positions_in<half_context>(tokens), kiln::cached<half_context>);
  }
};

struct HalfBlocks : kiln::Model {
  using Tokens = kiln::Tensor<kiln::i32, half_tokens>;
  HalfTransformer<kiln::f16> half{"half"};
  HalfTransformer<kiln::bf16> bfloat{"bfloat"};

  constexpr auto all_half(Tokens tokens) const { return half.all(tokens); }
  constexpr auto all_bfloat(Tokens tokens) const { return bfloat.all(tokens); }
  constexpr auto step_half(Tokens tokens) const { return half.step(tokens); }
  constexpr auto step_bfloat(Tokens tokens) const { return bfloat.step(tokens); }

  static constexpr auto entries() {
    using Self = HalfBlocks;
    return std::tuple{kiln::entry("all_half", &Self::all_half, {"tokens"}, {"logits"}),
                      kiln::entry("all_bfloat", &Self::all_bfloat, {"tokens"}, {"logits"}),
                      kiln::entry("step_half", &Self::step_half, {"tokens"}, {"logits"}),
                      kiln::entry("step_bfloat", &Self::step_bfloat, {"tokens"}, {"logits"})};
  }
};

} // namespace specs
