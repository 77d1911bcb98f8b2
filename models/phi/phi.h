// SPDX-License-Identifier: Apache-2.0
//
// Phi (Gunasekar et al. 2023) with the tensor names of its published checkpoints: attention and MLP in parallel after
// one norm, partial rotary positions, and biases everywhere.
#pragma once

#include "kiln/dsl.h"

#include <algorithm>

namespace phi {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  std::int64_t turned;  // the number of rotated elements of a head
  std::int64_t context; // maximum context length
  double base = 10000;  // base of the rotary positions
  double epsilon = 1e-5;
};

template <Shape S> struct Attention : kiln::Layer<Attention<S>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t head = S.width / S.heads, shared = head * S.key_value_heads;
  kiln::Linear<S.width, S.width> q_proj{"q_proj"}, dense{"dense"};
  kiln::Linear<S.width, shared> k_proj{"k_proj"}, v_proj{"v_proj"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto cached) const {
    auto q = kiln::rotary<S.heads>(q_proj(x), angles);
    auto k = kiln::rotary<S.key_value_heads>(k_proj(x), angles);
    return dense(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), cached));
  }
};

template <Shape S> struct Mlp : kiln::Layer<Mlp<S>> {
  using kiln::Layer<Mlp>::Layer;
  kiln::Linear<S.width, S.hidden> fc1{"fc1"};
  kiln::Linear<S.hidden, S.width> fc2{"fc2"};

  constexpr auto forward(const kiln::tensor auto &x) const { return fc2(kiln::gelu_tanh(fc1(x))); }
};

template <Shape S> struct Block {
  kiln::LayerNorm<S.width> norm{"input_layernorm", S.epsilon};
  Attention<S> attention{"self_attn"};
  Mlp<S> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto cached) const {
    auto n = norm(x);
    return x + attention(n, angles, cached) + mlp(n);
  }
};

/// The layers, with the prefix "model". The result is the last row of the context.
template <Shape S> struct Decoder : kiln::Layer<Decoder<S>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, Block<S>> layers{"layers"};
  kiln::LayerNorm<S.width> norm{"final_layernorm", S.epsilon};

  template <kiln::Dim Context>
  constexpr auto forward(const kiln::tensor auto &tokens, kiln::Cached<Context> cached) const {
    auto angles = kiln::sinusoidal<S.turned>(kiln::positions_in<Context>(tokens), S.base);
    return norm(kiln::last<0, 1>(layers(embed_tokens(tokens), angles, cached)));
  }
};

/// Generates text: every call appends tokens to the context, stores their keys and values in the KV cache, and returns
/// the logits of the next token. `decode` is `prefill` of one token.
template <Shape S> struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, std::min<std::int64_t>(S.context, 256)},
      context{"context", tokens, S.context};
  Decoder<S> model{"model"};
  kiln::Linear<S.width, S.vocabulary> lm_head{"lm_head"};

  constexpr auto extend(const kiln::tensor auto &x) const { return lm_head(model(x, kiln::cached<context>)); }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"})};
  }
};

} // namespace phi
