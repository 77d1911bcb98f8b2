// SPDX-License-Identifier: Apache-2.0
//
// A character language model of two LSTM layers (Hochreiter and Schmidhuber 1997), which remembers: the state of a call
// is where the next one goes on.
#include "char_gpt/vocabulary.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"tokens", 1, 256};

template <int Layers, std::int64_t Width, std::int64_t Hidden> struct CharLstm : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  static constexpr std::int64_t characters = static_cast<std::int64_t>(char_gpt::vocabulary.size());

  kiln::Embedding<characters, Width> embedding{"embedding"};
  kiln::Lstm<Width, Hidden, kiln::RecurrentOptions{.layers = Layers}> lstm{"lstm"};
  kiln::Linear<Hidden, characters> head{"head"};

  constexpr auto forward(kiln::Tensor<kiln::i32, T> tokens) const {
    kiln::State<kiln::f32, Layers, Hidden> h("h"), c("c");
    auto [read, last] = lstm(embedding(tokens), std::tuple{h.read(tokens), c.read(tokens)});
    h.store(std::get<0>(last));
    c.store(std::get<1>(last));
    return head(read);
  }
};

KILN_MODEL(char_lstm, CharLstm<2, 64, 256>)
