// SPDX-License-Identifier: Apache-2.0
//
// The Transformer for translation (Vaswani et al. 2017): post-norm encoder and decoder, sinusoidal positions, one table
// for the source, the target and the logits.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim source_256{"source_tokens", 1, 256}, target_256{"target_tokens", 1, 256},
    context_256{"context", target_256, 256};

template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Hidden, std::int64_t Vocabulary>
struct Transformer : kiln::Model {
  static constexpr kiln::Names inputs{"source", "target"}, outputs{"logits", "memory"};
  static constexpr kiln::BlockOptions options{.norm = kiln::NormOrder::post, .activation = kiln::Activation::relu};
  kiln::Embedding<Vocabulary, Width> embedding{"embedding"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, Hidden, options>> encoder{"encoder"};
  kiln::Stack<Layers, kiln::DecoderBlock<Width, Heads, Hidden, options>> decoder{"decoder"};

  constexpr auto embed(const kiln::tensor auto &tokens) const { return embed(tokens, kiln::positions(tokens)); }
  constexpr auto embed(const kiln::tensor auto &tokens, const kiln::tensor auto &positions) const {
    return embedding(tokens) * kiln::square_root(Width) + kiln::sinusoidal<Width>(positions);
  }
  constexpr auto forward(kiln::Tensor<kiln::i32, source_256> source, kiln::Tensor<kiln::i32, target_256> target) const {
    auto memory = encoder(embed(source));
    auto y = decoder(embed(target), memory);
    return kiln::outputs(kiln::logits(y, embedding), memory);
  }
};

/// A Transformer with two more entries, for translation: the source is encoded once, and each layer stores its keys and
/// values; then the target is decoded one or some tokens at a time.
template <std::int64_t Layers, std::int64_t Width, int Heads, std::int64_t Hidden, std::int64_t Vocabulary>
struct Translator : Transformer<Layers, Width, Heads, Hidden, Vocabulary> {
  constexpr auto encode(kiln::Tensor<kiln::i32, source_256> source) const {
    return this->decoder(this->encoder(this->embed(source)), kiln::remember);
  }
  constexpr auto step(kiln::Tensor<kiln::i32, target_256> target) const {
    auto x = this->embed(target, kiln::positions_in<context_256>(target));
    auto y = this->decoder(x, kiln::remembered<source_256>, kiln::cached<context_256>);
    return kiln::logits(kiln::last<0, 1>(y), this->embedding);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("encode", &Translator::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Translator::step, {"target"}, {"logits"})};
  }
};

using TransformerBase = Transformer<6, 512, 8, 2048, 37000>;
using TransformerLarge = Transformer<6, 1024, 16, 4096, 37000>;

} // namespace specs
