// SPDX-License-Identifier: Apache-2.0
//
// Sequence to sequence with additive attention (Bahdanau, Cho and Bengio 2015): a bidirectional GRU encodes the source;
// another GRU decodes the target, and attends to the encoded source before each token.
#pragma once

#include "kiln/dsl.h"
#include "names.h"

namespace names {

struct Recurrent : kiln::Model {
  static constexpr kiln::Dim S{"source_tokens", 1, source_tokens}, T{"target_tokens", 1, target_tokens};
  static constexpr std::int64_t width = 64, read_width = 128, memory_width = 2 * read_width, hidden = 192, score = 128;
  static constexpr std::int64_t features = hidden + memory_width + width; // inputs of the logits
  static constexpr double dropped = 0.2;                                  // in training

  kiln::Embedding<vocabulary, width> embedding{"embedding"};
  kiln::Gru<width, read_width, kiln::RecurrentOptions{.bidirectional = true}> encoder{"encoder"};
  kiln::Linear<read_width, hidden> first{"first"};
  kiln::AdditiveAttention<hidden, memory_width, score> attention{"attention"};
  kiln::GruStep<width + memory_width, hidden> cell{"cell"};
  kiln::Linear<features, vocabulary> head{"head"};

  constexpr auto embed(const kiln::tensor auto &tokens) const { return kiln::dropout(embedding(tokens), dropped); }
  constexpr auto logits_of(const kiln::tensor auto &parts) const { return head(kiln::dropout(parts, dropped)); }

  /// Encodes sources [S, ...]. Returns the encoded source, and the decoder's initial state, from the first token, where
  /// the reverse pass ends.
  template <class Lengths = kiln::None>
  constexpr auto read(const kiln::tensor auto &source, const Lengths &lengths = {}) const {
    auto [memory, last] = encoder(embed(source), kiln::None(), lengths);
    return std::pair{memory, kiln::tanh(first(kiln::slice<0, 1, 1>(last)))};
  }
  /// From the state before a token y [..., 1, width]: returns the next state, the inputs of the logits, the attention
  /// weights [..., 1, S]. The mask is added to the attention scores.
  template <class Mask = kiln::None>
  constexpr auto write(const kiln::tensor auto &y, const kiln::tensor auto &h, const kiln::tensor auto &keys,
                       const kiln::tensor auto &memory, const Mask &mask = {}) const {
    auto seen = attention.weights(h, keys, mask);
    auto context = kiln::matmul(seen, memory);
    auto next = cell(kiln::concat<-1>(y, context), h);
    return std::tuple{next, kiln::concat<-1>(next, context, y), seen};
  }
  /// For all tokens of targets, y [T, ..., 1, width]: returns the inputs of the logits, and the attention weights
  /// before each.
  template <class Mask = kiln::None>
  constexpr auto write_all(const kiln::tensor auto &y, const kiln::tensor auto &h, const kiln::tensor auto &memory,
                           const Mask &mask = {}) const {
    auto keys = attention.keys(memory);
    auto next = [&](const auto &before, const auto &here) {
      auto [after, parts, seen] = write(here, before, keys, memory, mask);
      return std::pair{after, std::tuple{parts, seen}};
    };
    return kiln::scan(h, y, next).second;
  }

  /// Processes all tokens of a target at once: logits of the next token, and attention weights before each token.
  constexpr auto forward(kiln::Tensor<kiln::i32, S> source, kiln::Tensor<kiln::i32, T> target) const {
    auto [memory, h] = read(source);
    auto [parts, seen] = write_all(kiln::reshape<T, 1, width>(embed(target)), h, memory);
    return kiln::outputs(logits_of(kiln::reshape<T, features>(parts)), kiln::reshape<T, S>(seen));
  }

  // Token by token: the encoded source stays in the arena.
  kiln::State<kiln::f32, 1, hidden> state{"state"};
  kiln::State<kiln::f32, S.max(), score> kept_keys{"keys"};
  kiln::State<kiln::f32, S.max(), memory_width> kept_memory{"memory"};

  constexpr auto encode(kiln::Tensor<kiln::i32, S> source) const {
    auto [memory, h] = read(source);
    state.store(h);
    kept_keys.append<S>(attention.keys(memory));
    return kept_memory.append<S>(memory);
  }
  constexpr auto step(kiln::Tensor<kiln::i32, 1> token) const {
    auto [next, parts, seen] =
        write(embed(token), state.read(token), kept_keys.read<S>(token), kept_memory.read<S>(token));
    state.store(next);
    return kiln::outputs(logits_of(parts), seen);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Recurrent::forward, {"source", "target"}, {"logits", "seen"}),
                      kiln::entry("encode", &Recurrent::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Recurrent::step, {"token"}, {"logits", "seen"})};
  }
};

} // namespace names
