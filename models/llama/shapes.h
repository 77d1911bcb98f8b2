// SPDX-License-Identifier: Apache-2.0
//
// The shapes of released decoders, for the specs and for programs that check a checkpoint's config.json.
#pragma once

#include "kiln/frequencies.h"

#include <cstdint>

namespace llama {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  std::int64_t context; // maximum number of tokens

  // Variations of similar models.
  std::int64_t head = 0;         // width of a head; 0: width / heads
  bool is_tied = false;          // the logits use the embedding's weights
  bool has_qkv_bias = false;     // biases of the query, key and value projections
  bool has_o_bias = false;       // bias of the attention output projection
  bool has_mlp_bias = false;     // biases of the MLP
  bool has_qk_norm = false;      // queries and keys are normalised per head
  bool has_gelu_gate = false;    // tanh approximation of GELU instead of SiLU
  bool has_norms_of_one = false; // norms multiply by 1 + weight
  kiln::RotaryScaling scaling{}; // of the frequencies of rotary positions, for longer texts

  // Doubles come last: clang 22 corrupts members after a double in a template argument.
  double base = 10000; // of the rotary positions
  double epsilon = 1e-5;
  double embedding_scale = 1;

  constexpr std::int64_t head_width() const { return head > 0 ? head : width / heads; }
};

constexpr Shape with_base(double base, Shape shape) {
  shape.base = base;
  return shape;
}

inline constexpr Shape tiny_llama_1b{32000, 22, 2048, 32, 4, 5632, 2048};
inline constexpr Shape llama_2_7b{32000, 32, 4096, 32, 32, 11008, 4096};
inline constexpr Shape llama_2_70b{32000, 80, 8192, 64, 8, 28672, 4096};
inline constexpr Shape llama_3_8b = with_base(500000, {128256, 32, 4096, 32, 8, 14336, 8192});
inline constexpr Shape mistral_7b{32000, 32, 4096, 32, 8, 14336, 4096};

/// A small random model of this kind.
inline constexpr Shape small = with_base(500000, {512, 4, 128, 8, 2, 352, 256});
/// The shape that is trained here, on the King James Bible.
inline constexpr Shape king_james{2000, 4, 128, 4, 2, 352, 256};

} // namespace llama
