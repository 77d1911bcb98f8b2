// SPDX-License-Identifier: Apache-2.0
//
// Llama-like decoders (Touvron et al. 2023) under the tensor names of their checkpoints: pre-norm with RMS norm, rotary
// positions, grouped-query attention, a gated MLP.
#pragma once

#include "kiln/dsl.h"
#include "shapes.h"

#include <algorithm>

namespace llama {

/// The default projection of layers; `Projection` may be another one, for example with adapters.
template <std::int64_t In, std::int64_t Out> using Linear = kiln::Linear<In, Out, false>;
template <std::int64_t In, std::int64_t Out, bool Bias, template <std::int64_t, std::int64_t> class Projection>
using Projected = std::conditional_t<Bias, kiln::Linear<In, Out>, Projection<In, Out>>;

template <Shape S, std::int64_t Width, kiln::ElementType E> struct Norm : kiln::Layer<Norm<S, Width, E>> {
  using kiln::Layer<Norm>::Layer;

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto weight = kiln::parameter<E, Width>(x, "weight");
    if constexpr (S.has_norms_of_one)
      return kiln::rms_norm(x, weight + 1, S.epsilon);
    else
      return kiln::rms_norm(x, weight, S.epsilon);
  }
};

template <Shape S, template <std::int64_t, std::int64_t> class Projection, kiln::ElementType E>
struct Attention : kiln::Layer<Attention<S, Projection, E>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t head = S.head_width(), own = head * S.heads, shared = head * S.key_value_heads;
  Projected<S.width, own, S.has_qkv_bias, Projection> q_proj{"q_proj"};
  Projected<S.width, shared, S.has_qkv_bias, Projection> k_proj{"k_proj"}, v_proj{"v_proj"};
  Projected<own, S.width, S.has_o_bias, Projection> o_proj{"o_proj"};
  Norm<S, head, E> q_norm{"q_norm"}, k_norm{"k_norm"};

  /// With `cached`, x are the last rows of the context; keys and values of the others are in the KV cache.
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto... cached) const {
    auto q = kiln::rotary<S.heads>(normed<S.heads>(q_proj(x), q_norm), angles);
    auto k = kiln::rotary<S.key_value_heads>(normed<S.key_value_heads>(k_proj(x), k_norm), angles);
    if constexpr (sizeof...(cached) == 0)
      return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), kiln::causal));
    else
      return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), cached...));
  }

private:
  /// Returns x, or `norm` of each of its heads.
  template <int Heads, kiln::tensor X> static constexpr auto normed(const X &x, const auto &norm) {
    if constexpr (!S.has_qk_norm)
      return x;
    else if constexpr (X::rank == 2)
      return kiln::reshape<X::shape[0], X::shape[1]>(norm(kiln::reshape<X::shape[0], Heads, head>(x)));
    else
      return kiln::reshape<X::shape[0], X::shape[1], X::shape[2]>(
          norm(kiln::reshape<X::shape[0], X::shape[1], Heads, head>(x)));
  }
};

/// A gated MLP (SwiGLU, GEGLU; Shazeer 2020).
template <Shape S, template <std::int64_t, std::int64_t> class Projection>
struct Mlp : kiln::Layer<Mlp<S, Projection>> {
  using kiln::Layer<Mlp>::Layer;
  Projected<S.width, S.hidden, S.has_mlp_bias, Projection> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  Projected<S.hidden, S.width, S.has_mlp_bias, Projection> down_proj{"down_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const { return down_proj(gate(gate_proj(x)) * up_proj(x)); }

private:
  static constexpr auto gate(const kiln::tensor auto &x) {
    if constexpr (S.has_gelu_gate)
      return kiln::gelu_tanh(x);
    else
      return kiln::silu(x);
  }
};

template <Shape S, template <std::int64_t, std::int64_t> class Projection, kiln::ElementType E> struct Block {
  Norm<S, S.width, E> before{"input_layernorm"}, between{"post_attention_layernorm"};
  Attention<S, Projection, E> attention{"self_attn"};
  Mlp<S, Projection> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, auto... cached) const {
    auto y = x + attention(before(x), angles, cached...);
    return y + mlp(between(y));
  }
};

/// The layers with the prefix "model". All weights have type E, including those of `Projection`.
template <Shape S, template <std::int64_t, std::int64_t> class Projection = Linear, kiln::ElementType E = kiln::f32>
struct Decoder : kiln::Layer<Decoder<S, Projection, E>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width, E> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, Block<S, Projection, E>> layers{"layers"};
  Norm<S, S.width, E> norm{"norm"};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto angles = kiln::cast<E>(angles_at(kiln::positions(tokens)));
    return norm(layers(embedded(tokens), angles));
  }
  template <kiln::Dim Context, kiln::CacheType Type>
  constexpr auto forward(const kiln::tensor auto &tokens, kiln::Cached<Context, Type> cached) const {
    auto angles = kiln::cast<E>(angles_at(kiln::positions_in<Context>(tokens)));
    return norm(kiln::last<0, 1>(layers(embedded(tokens), angles, cached)));
  }

private:
  static constexpr auto angles_at(const kiln::tensor auto &positions) {
    constexpr std::int64_t head = S.head_width();
    if constexpr (S.scaling == kiln::RotaryScaling())
      return kiln::sinusoidal<head>(positions, S.base);
    else
      return kiln::sinusoidal(positions, kiln::frequencies<head>(S.base).scaled(S.scaling));
  }

  constexpr auto embedded(const kiln::tensor auto &tokens) const {
    if constexpr (S.embedding_scale != 1)
      return embed_tokens(tokens) * S.embedding_scale;
    else
      return embed_tokens(tokens);
  }
};

/// tokens [Batch, Tokens] -> logits of each next token [Batch, Tokens, vocabulary].
template <Shape S, kiln::Dim Batch, kiln::Dim Tokens> struct Llama : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  Decoder<S> model{"model"};
  Linear<S.width, S.vocabulary> lm_head{"lm_head"};

  constexpr auto forward(kiln::Tensor<kiln::i32, Batch, Tokens> tokens) const { return lm_head(model(tokens)); }
};

/// Text generation: every call appends tokens to the context, with a KV cache, and returns the logits of the next
/// token. `decode` is `prefill` of one token.
template <Shape S, template <std::int64_t, std::int64_t> class Projection = Linear, kiln::ElementType E = kiln::f32>
struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, std::min<std::int64_t>(S.context, 256)},
      context{"context", tokens, S.context};
  Decoder<S, Projection, E> model{"model"};
  kiln::Linear<S.width, S.vocabulary, false, kiln::WeightOrder::out_in, E> lm_head{"lm_head"};

  constexpr auto extend(const kiln::tensor auto &x) const {
    auto rows = model(x, kiln::cached<context>);
    if constexpr (S.is_tied)
      return kiln::logits(rows, model.embed_tokens);
    else
      return lm_head(rows);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}).batched(32),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"}).batched(32)};
  }
};

} // namespace llama
