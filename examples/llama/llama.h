// SPDX-License-Identifier: Apache-2.0
//
// The decoders of today (Touvron et al. 2023) under the names of their published checkpoints: RMS norm before each
// part, rotary positions, fewer heads of keys and values than of queries, a gated perceptron.
#pragma once

#include "kiln/dsl.h"
#include "shapes.h"

#include <algorithm>

namespace llama {

/// What layers multiply by, unless `Projection` is something else, with adapters beside it for example.
template <std::int64_t In, std::int64_t Out> using Linear = kiln::Linear<In, Out, false>;

template <Shape S, template <std::int64_t, std::int64_t> class Projection>
struct Attention : kiln::Layer<Attention<S, Projection>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t shared = S.width / S.heads * S.key_value_heads;
  Projection<S.width, S.width> q_proj{"q_proj"}, o_proj{"o_proj"};
  Projection<S.width, shared> k_proj{"k_proj"}, v_proj{"v_proj"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles) const {
    auto q = kiln::rotary<S.heads>(q_proj(x), angles);
    auto k = kiln::rotary<S.key_value_heads>(k_proj(x), angles);
    return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), kiln::causal));
  }
  /// `x` are the last rows of the context; keys and values of the others were kept by earlier calls.
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto cached) const {
    auto q = kiln::rotary<S.heads>(q_proj(x), angles);
    auto k = kiln::rotary<S.key_value_heads>(k_proj(x), angles);
    return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), cached));
  }
};

/// A perceptron whose activations are gated (SwiGLU; Shazeer 2020).
template <Shape S, template <std::int64_t, std::int64_t> class Projection>
struct Mlp : kiln::Layer<Mlp<S, Projection>> {
  using kiln::Layer<Mlp>::Layer;
  Projection<S.width, S.hidden> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  Projection<S.hidden, S.width> down_proj{"down_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const { return down_proj(kiln::silu(gate_proj(x)) * up_proj(x)); }
};

template <Shape S, template <std::int64_t, std::int64_t> class Projection, kiln::ElementType E> struct Block {
  kiln::RmsNorm<S.width, E> before{"input_layernorm", S.epsilon}, between{"post_attention_layernorm", S.epsilon};
  Attention<S, Projection> attention{"self_attn"};
  Mlp<S, Projection> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto... cached) const {
    auto y = x + attention(before(x), angles, cached...);
    return y + mlp(between(y));
  }
};

/// The layers below the prefix "model". All is of type E, what `Projection` makes, too.
template <Shape S, template <std::int64_t, std::int64_t> class Projection = Linear, kiln::ElementType E = kiln::f32>
struct Decoder : kiln::Layer<Decoder<S, Projection, E>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width, E> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, Block<S, Projection, E>> layers{"layers"};
  kiln::RmsNorm<S.width, E> norm{"norm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto angles = kiln::cast<E>(kiln::sinusoidal<S.width / S.heads>(kiln::positions(tokens), S.base));
    return norm(layers(embed_tokens(tokens), angles));
  }
  template <kiln::Dim Context, kiln::CacheType Type>
  constexpr auto forward(const kiln::tensor auto &tokens, kiln::Cached<Context, Type> cached) const {
    auto angles = kiln::cast<E>(kiln::sinusoidal<S.width / S.heads>(kiln::positions_in<Context>(tokens), S.base));
    return norm(kiln::last<0, 1>(layers(embed_tokens(tokens), angles, cached)));
  }
};

/// tokens [Batch, Tokens] -> logits of each next token [Batch, Tokens, vocabulary].
template <Shape S, kiln::Dim Batch, kiln::Dim Tokens> struct Llama : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  Decoder<S> model{"model"};
  Linear<S.width, S.vocabulary> lm_head{"lm_head"};

  constexpr auto forward(kiln::Tensor<kiln::i32, Batch, Tokens> tokens) const { return lm_head(model(tokens)); }
};

/// Writes on: every call adds tokens to the context, whose keys and values are kept, and gives the logits of the token
/// that follows. `decode` is `prefill` of one token.
template <Shape S, template <std::int64_t, std::int64_t> class Projection = Linear, kiln::ElementType E = kiln::f32>
struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, std::min<std::int64_t>(S.context, 256)},
      context{"context", tokens, S.context};
  Decoder<S, Projection, E> model{"model"};
  kiln::Linear<S.width, S.vocabulary, false, kiln::WeightOrder::out_in, E> lm_head{"lm_head"};

  constexpr auto extend(const kiln::tensor auto &x) const { return lm_head(model(x, kiln::cached<context>)); }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}).batched(32),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"}).batched(32)};
  }
};

} // namespace llama
