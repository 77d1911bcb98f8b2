// SPDX-License-Identifier: Apache-2.0
// A model with everything that can be wrong in a call: two extents, indices into tables, lengths, weights, a stack,
// variables.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 3};
inline constexpr kiln::Dim T{"tokens", 1, 12};

struct Small : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "lengths"}, outputs{"logits"}, variables{"layers.*", "words.weight"};
  kiln::Embedding<11, 8> words{"words"};
  kiln::Embedding<12, 8> places{"places"};
  kiln::Stack<2, kiln::EncoderBlock<8, 2, 24>> layers{"layers"};
  kiln::LayerNorm<8> norm{"norm"};

  constexpr auto forward(kiln::Tensor<kiln::i32, B, T> tokens, kiln::Tensor<kiln::i32, B> lengths) const {
    auto x = words(tokens) + places(kiln::positions(tokens));
    return kiln::logits(norm(layers(x, kiln::lengths(lengths))), words);
  }
};

KILN_MODEL(small, Small)
