// SPDX-License-Identifier: Apache-2.0
//
// The shapes of published decoders, for the specs and for programs that check a checkpoint's config.json.
#pragma once

#include <array>
#include <cstdint>

namespace llama {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  std::int64_t context; // tokens that a text may have

  // What models of the same kind have in another way.
  std::int64_t head = 0;         // width of a head; 0: a part of the width
  bool is_tied = false;          // the rows of the embedding give the logits
  bool has_qkv_bias = false;     // of queries, keys and values
  bool has_o_bias = false;       // of what attention gives
  bool has_mlp_bias = false;     // of the perceptron
  bool has_qk_norm = false;      // queries and keys are normed, each head by itself
  bool has_gelu_gate = false;    // in tanh form, in place of silu
  bool has_norms_of_one = false; // norms multiply by 1 + weight
  int scaled_pairs = 0;          // of the numbers of a head, the last ones, whose positions are scaled for longer texts

  // Doubles come last: clang 22 mixes up what stands behind one in a template argument.
  double base = 10000; // of the rotary positions
  double epsilon = 1e-5;
  double embedding_scale = 1;
  double rotary_scale = 1;                // of the sines and cosines by which positions turn
  std::array<double, 128> scaled_bases{}; // scaled pairs are turned by position / sqrt(base), each by its own

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

/// One to run at once, of the same kind.
inline constexpr Shape small = with_base(500000, {512, 4, 128, 8, 2, 352, 256});
/// The one that is trained here, on the King James Bible.
inline constexpr Shape king_james{2000, 4, 128, 4, 2, 352, 256};

} // namespace llama
