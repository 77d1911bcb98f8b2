// SPDX-License-Identifier: Apache-2.0
//
// Decoders with mixtures of experts (Mixtral, Jiang et al. 2024; Qwen MoE) with the tensor names of their published
// checkpoints: Llama-like attention, and in place of the MLP some of many, which a router chooses for each token.
#pragma once

#include "kiln/dsl.h"

#include <algorithm>

namespace moe {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;       // width of an expert
  int experts;               // of a layer
  int chosen;                // experts of a token
  std::int64_t head;         // width of a head
  std::int64_t context;      // maximum number of tokens
  std::int64_t shared = 0;   // width of the expert that each token has in addition; 0: there is none
  bool is_normalized = true; // the gates of a token's experts are divided by their sum
  bool is_mixtral = false;   // the experts are called block_sparse_moe
  bool is_tied = false;      // the logits use the embedding's weights
  bool has_qkv_bias = false; // biases of the query, key and value projections
  bool has_qk_norm = false;  // queries and keys are normalised per head

  // Doubles come last: clang 22 corrupts members after a double in a template argument.
  double base = 1000000; // of the rotary positions
  double epsilon = 1e-6;
};

template <Shape S> struct Attention : kiln::Layer<Attention<S>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t own = S.head * S.heads, shared = S.head * S.key_value_heads;
  kiln::Linear<S.width, own, S.has_qkv_bias> q_proj{"q_proj"};
  kiln::Linear<S.width, shared, S.has_qkv_bias> k_proj{"k_proj"}, v_proj{"v_proj"};
  kiln::Linear<own, S.width, false> o_proj{"o_proj"};
  kiln::RmsNorm<S.head> q_norm{"q_norm", S.epsilon}, k_norm{"k_norm", S.epsilon};

  /// `options` is `kiln::causal` for whole texts, and `kiln::cached` for the last rows of a context.
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, const auto &options) const {
    auto q = kiln::rotary<S.heads>(normed<S.heads>(q_proj(x), q_norm), angles);
    auto k = kiln::rotary<S.key_value_heads>(normed<S.key_value_heads>(k_proj(x), k_norm), angles);
    return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), options));
  }

private:
  /// Returns x, or `norm` of each of its heads.
  template <int Heads, kiln::tensor X> static constexpr auto normed(const X &x, const auto &norm) {
    constexpr auto shape = X::shape;
    if constexpr (!S.has_qk_norm)
      return x;
    else if constexpr (X::rank == 2)
      return kiln::reshape<shape[0], shape[1]>(norm(kiln::reshape<shape[0], Heads, S.head>(x)));
    else
      return kiln::reshape<shape[0], shape[1], shape[2]>(norm(kiln::reshape<shape[0], shape[1], Heads, S.head>(x)));
  }
};

template <Shape S> struct Block {
  kiln::RmsNorm<S.width> before{"input_layernorm", S.epsilon}, between{"post_attention_layernorm", S.epsilon};
  Attention<S> attention{"self_attn"};
  kiln::Experts<S.width, S.hidden, S.experts, S.chosen,
                kiln::ExpertsOptions{.normalize = S.is_normalized, .shared = S.shared, .gates_shared = S.shared > 0}>
      experts{S.is_mixtral ? "block_sparse_moe" : "mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles, const auto &options) const {
    auto y = x + attention(before(x), angles, options);
    return y + experts(between(y));
  }
};

/// The layers, with the prefix "model".
template <Shape S> struct Decoder : kiln::Layer<Decoder<S>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, Block<S>> layers{"layers"};
  kiln::RmsNorm<S.width> norm{"norm", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto angles = kiln::sinusoidal<S.head>(kiln::positions(tokens), S.base);
    return norm(layers(embed_tokens(tokens), angles, kiln::causal));
  }
  template <kiln::Dim Context, kiln::CacheType Type>
  constexpr auto forward(const kiln::tensor auto &tokens, kiln::Cached<Context, Type> cached) const {
    auto angles = kiln::sinusoidal<S.head>(kiln::positions_in<Context>(tokens), S.base);
    return norm(kiln::last<0, 1>(layers(embed_tokens(tokens), angles, cached)));
  }
};

/// Text generation: every call appends tokens to the context, with a KV cache, and returns the logits of the next
/// token. `decode` is `prefill` of one token, which reads the weights of the experts that it chooses only.
template <Shape S> struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, std::min<std::int64_t>(S.context, 256)},
      context{"context", tokens, S.context};
  Decoder<S> model{"model"};
  kiln::Linear<S.width, S.vocabulary, false> lm_head{"lm_head"};

  constexpr auto scores(const kiln::tensor auto &rows) const {
    if constexpr (S.is_tied)
      return kiln::logits(rows, model.embed_tokens);
    else
      return lm_head(rows);
  }
  constexpr auto extend(const kiln::tensor auto &x) const { return scores(model(x, kiln::cached<context>)); }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"})};
  }
};

} // namespace moe
