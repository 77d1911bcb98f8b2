// SPDX-License-Identifier: Apache-2.0
//
// A character language model of two LSTM layers (Hochreiter and Schmidhuber 1997) with a persistent state: each call
// continues from the state of the previous one.
#pragma once

#include "char_gpt/vocabulary.h"
#include "kiln/dsl.h"

namespace char_lstm {

inline constexpr kiln::Dim T{"tokens", 1, 256};

template <int Layers, std::int64_t Width, std::int64_t Hidden> struct CharLstm : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  static constexpr std::int64_t characters = static_cast<std::int64_t>(char_gpt::vocabulary.size());

  kiln::Embedding<characters, Width> embedding{"embedding"};
  kiln::Lstm<Width, Hidden, kiln::RecurrentOptions{.layers = Layers}> lstm{"lstm"};
  kiln::Linear<Hidden, characters> head{"head"};

  /// Returns the logits of the token after each token of [steps, Streams...], continuing from the previous call, whose
  /// state is multiplied by `keep`.
  template <kiln::Dim... Streams>
  constexpr auto read(const kiln::tensor auto &tokens, const kiln::tensor auto &...keep) const {
    kiln::State<kiln::f32, Layers, Streams..., Hidden> h("h"), c("c");
    auto [read, last] =
        lstm(embedding(tokens), std::tuple{(h.read(tokens) * ... * keep), (c.read(tokens) * ... * keep)});
    h.store(std::get<0>(last));
    c.store(std::get<1>(last));
    return head(read);
  }
  constexpr auto forward(kiln::Tensor<kiln::i32, T> tokens) const { return read<>(tokens); }
};

using Trained = CharLstm<2, 64, 256>;

} // namespace char_lstm
