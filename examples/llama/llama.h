// SPDX-License-Identifier: Apache-2.0
//
// The decoders of today (Touvron et al. 2023) under the names of their published checkpoints: RMS norm before each
// part, rotary positions, fewer heads of keys and values than of queries, a gated perceptron.
#pragma once

#include "kiln/dsl.h"

namespace llama {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  double base = 10000; // of the rotary positions
  double epsilon = 1e-5;
};

template <std::int64_t In, std::int64_t Out> using Projection = kiln::Linear<In, Out, false>;

template <Shape S> struct Attention : kiln::Layer<Attention<S>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t shared = S.width / S.heads * S.key_value_heads;
  Projection<S.width, S.width> q_proj{"q_proj"}, o_proj{"o_proj"};
  Projection<S.width, shared> k_proj{"k_proj"}, v_proj{"v_proj"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles) const {
    auto q = kiln::rotary<S.heads>(q_proj(x), angles);
    auto k = kiln::rotary<S.key_value_heads>(k_proj(x), angles);
    return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), kiln::causal));
  }
};

/// A perceptron whose activations are gated (SwiGLU; Shazeer 2020).
template <Shape S> struct Mlp : kiln::Layer<Mlp<S>> {
  using kiln::Layer<Mlp>::Layer;
  Projection<S.width, S.hidden> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  Projection<S.hidden, S.width> down_proj{"down_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const { return down_proj(kiln::silu(gate_proj(x)) * up_proj(x)); }
};

template <Shape S> struct Block {
  kiln::RmsNorm<S.width> before{"input_layernorm", S.epsilon}, between{"post_attention_layernorm", S.epsilon};
  Attention<S> attention{"self_attn"};
  Mlp<S> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles) const {
    auto y = x + attention(before(x), angles);
    return y + mlp(between(y));
  }
};

/// The layers below the prefix "model".
template <Shape S> struct Decoder : kiln::Layer<Decoder<S>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, Block<S>> layers{"layers"};
  kiln::RmsNorm<S.width> norm{"norm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto angles = kiln::sinusoidal<S.width / S.heads>(kiln::positions(tokens), S.base);
    return norm(layers(embed_tokens(tokens), angles));
  }
};

/// tokens [Batch, Tokens] -> logits of each next token [Batch, Tokens, vocabulary].
template <Shape S, kiln::Dim Batch, kiln::Dim Tokens> struct Llama : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  Decoder<S> model{"model"};
  Projection<S.width, S.vocabulary> lm_head{"lm_head"};

  constexpr auto forward(kiln::Tensor<kiln::i32, Batch, Tokens> tokens) const { return lm_head(model(tokens)); }
};

// Published shapes.
inline constexpr Shape tiny_llama_1b{32000, 22, 2048, 32, 4, 5632};
inline constexpr Shape llama_2_7b{32000, 32, 4096, 32, 32, 11008};
inline constexpr Shape llama_2_70b{32000, 80, 8192, 64, 8, 28672};
inline constexpr Shape llama_3_8b{128256, 32, 4096, 32, 8, 14336, 500000};
inline constexpr Shape mistral_7b{32000, 32, 4096, 32, 8, 14336};

/// One to run at once, of the same kind.
inline constexpr Shape small{512, 4, 128, 8, 2, 352, 500000};

} // namespace llama
