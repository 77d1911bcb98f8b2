// SPDX-License-Identifier: Apache-2.0
//
// Sequence to sequence with additive attention (Bahdanau, Cho and Bengio 2015): a GRU reads the source in both
// directions; another one writes the target, and looks back at what was read before each token.
#include "names.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim S{"source_tokens", 1, names::source_tokens}, T{"target_tokens", 1, names::target_tokens};

struct Recurrent : kiln::Model {
  static constexpr std::int64_t width = 64, read_width = 128, memory_width = 2 * read_width, hidden = 192, score = 128;
  static constexpr std::int64_t features = hidden + memory_width + width; // of which logits are made

  kiln::Embedding<names::vocabulary, width> embedding{"embedding"};
  kiln::Gru<width, read_width, kiln::RecurrentOptions{.bidirectional = true}> encoder{"encoder"};
  kiln::Linear<read_width, hidden> first{"first"};
  kiln::AdditiveAttention<hidden, memory_width, score> attention{"attention"};
  kiln::GruStep<width + memory_width, hidden> cell{"cell"};
  kiln::Linear<features, names::vocabulary> head{"head"};

  /// What was read, and the state to begin with: that of the first token, where the reverse pass ends.
  constexpr auto read(const kiln::tensor auto &source) const {
    auto [memory, last] = encoder(embedding(source));
    return std::pair{memory, kiln::tanh(first(kiln::slice<0, 1, 1>(last)))};
  }
  /// From the state before a token y [1, width]: the next state, what the logits are made of, what is seen [1, S].
  constexpr auto write(const kiln::tensor auto &y, const kiln::tensor auto &h, const kiln::tensor auto &keys,
                       const kiln::tensor auto &memory) const {
    auto seen = attention.weights(h, keys);
    auto context = kiln::matmul(seen, memory);
    auto next = cell(kiln::concat<-1>(y, context), h);
    return std::tuple{next, kiln::concat<-1>(next, context, y), seen};
  }

  /// All tokens of a target at once: logits of what follows each, and what is seen before it.
  constexpr auto forward(kiln::Tensor<kiln::i32, S> source, kiln::Tensor<kiln::i32, T> target) const {
    auto [memory, h] = read(source);
    auto keys = attention.keys(memory);
    auto step = [&](const auto &before, const auto &y) {
      auto [next, parts, seen] = write(kiln::reshape<1, width>(y), before, keys, memory);
      return std::pair{next, std::tuple{kiln::reshape<features>(parts), kiln::reshape<S>(seen)}};
    };
    auto [last, written] = kiln::scan(h, embedding(target), step);
    return kiln::outputs(head(std::get<0>(written)), std::get<1>(written));
  }

  // Token by token: what was read stays in the arena.
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
        write(embedding(token), state.read(token), kept_keys.read<S>(token), kept_memory.read<S>(token));
    state.store(next);
    return kiln::outputs(head(parts), seen);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Recurrent::forward, {"source", "target"}, {"logits", "seen"}),
                      kiln::entry("encode", &Recurrent::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Recurrent::step, {"token"}, {"logits", "seen"})};
  }
};

KILN_MODEL(names_recurrent, Recurrent)
