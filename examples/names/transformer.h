// SPDX-License-Identifier: Apache-2.0
//
// A small Transformer (Vaswani et al. 2017): post-norm blocks, sinusoidal positions, one table for the source, the
// target and the logits. `encode` reads the source, whose keys and values each block stores; `step` writes token by
// token.
#pragma once

#include "kiln/dsl.h"
#include "names.h"

namespace names {

struct Transformer : kiln::Model {
  static constexpr kiln::Dim S{"source_tokens", 1, source_tokens}, context{"context", 1, target_tokens};
  static constexpr std::int64_t width = 128, hidden = 512;
  static constexpr int heads = 4;
  static constexpr double dropped = 0.1; // in training
  static constexpr kiln::BlockOptions options{.norm = kiln::NormOrder::post, .activation = kiln::Activation::relu};
  using Decoder = kiln::DecoderBlock<width, heads, hidden, options>;

  kiln::Embedding<vocabulary, width> embedding{"embedding"};
  kiln::Stack<2, kiln::EncoderBlock<width, heads, hidden, options>> encoder{"encoder"};
  Decoder decoder0{"decoder.0"}, decoder1{"decoder.1"};

  constexpr auto embed(const kiln::tensor auto &tokens, const kiln::tensor auto &positions) const {
    auto x = embedding(tokens) * kiln::square_root(width) + kiln::sinusoidal<width>(positions);
    return kiln::dropout(x, dropped);
  }
  constexpr auto encode(kiln::Tensor<kiln::i32, S> source) const {
    auto memory = encoder(embed(source, kiln::positions(source)));
    return decoder1(decoder0(memory, kiln::remember), kiln::remember);
  }
  /// Also returns the attention to the source, averaged over all heads of both blocks.
  constexpr auto step(kiln::Tensor<kiln::i32, 1> token) const {
    auto x = embed(token, kiln::positions_in<context>(token));
    auto [y, first] = decoder0.with_weights(x, kiln::remembered<S>, kiln::cached<context>);
    auto [z, second] = decoder1.with_weights(y, kiln::remembered<S>, kiln::cached<context>);
    return kiln::outputs(kiln::logits(z, embedding), kiln::mean<0>(kiln::concat<0>(first, second)));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("encode", &Transformer::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Transformer::step, {"token"}, {"logits", "seen"})};
  }
};

} // namespace names
