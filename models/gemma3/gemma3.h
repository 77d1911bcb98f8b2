// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3 (Gemma Team 2025) with the tensor names of its published checkpoints: of each period of layers all but the
// last attend to a sliding window, and the last one to the whole context. The two kinds have different rotary bases. A
// norm precedes and follows each attention and each MLP, and the logits use the embedding's weights.
#pragma once

#include "kiln/dsl.h"

#include <algorithm>

namespace gemma3 {

struct Shape {
  std::int64_t vocabulary, layers, width;
  int heads, key_value_heads;
  std::int64_t hidden;
  std::int64_t head;             // width of a head
  std::int64_t window;           // tokens that a local layer attends to
  std::int64_t period = 6;       // the last layer of each period is global
  std::int64_t context;          // maximum number of tokens
  kiln::RotaryScaling scaling{}; // of the frequencies of global layers, for longer texts

  // Doubles come last: clang 22 corrupts members after a double in a template argument.
  double base = 1000000; // of the rotary positions of global layers
  double local_base = 10000;
  double epsilon = 1e-6;
  double query_scalar; // scores are divided by its square root
  double embedding_scale;
};

/// RMS norm that multiplies by 1 + weight.
template <Shape S, std::int64_t Width> struct Norm : kiln::Layer<Norm<S, Width>> {
  using kiln::Layer<Norm>::Layer;

  constexpr auto forward(const kiln::tensor auto &x) const {
    return kiln::rms_norm(x, kiln::parameter<kiln::f32, Width>(x, "weight", kiln::Initial::zeros()) + 1, S.epsilon);
  }
};

/// The square root at compile time, by Newton's method.
constexpr double square_root(double x) {
  double root = x > 1 ? x : 1;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2)
    root = next;
  return root;
}

template <Shape S, bool IsLocal> struct Attention : kiln::Layer<Attention<S, IsLocal>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t own = S.head * S.heads, shared = S.head * S.key_value_heads;
  static constexpr std::int64_t window = std::min(S.window, S.context);
  static constexpr double scale = 1 / square_root(S.query_scalar);
  kiln::Linear<S.width, own, false> q_proj{"q_proj"};
  kiln::Linear<S.width, shared, false> k_proj{"k_proj"}, v_proj{"v_proj"};
  kiln::Linear<own, S.width, false> o_proj{"o_proj"};
  Norm<S, S.head> q_norm{"q_norm"}, k_norm{"k_norm"};

  /// Whole texts, [..., tokens, width].
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles) const {
    if constexpr (IsLocal)
      return attend(x, angles, kiln::causal | kiln::window(window) | kiln::scale(scale));
    else
      return attend(x, angles, kiln::causal | kiln::scale(scale));
  }
  /// The last rows of the context. Keys and values of the others are in the KV cache: in a local layer those of the
  /// window only.
  template <kiln::Dim Context, kiln::CacheType Type>
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &angles,
                         kiln::Cached<Context, Type> cached) const {
    if constexpr (IsLocal)
      return attend(x, angles, kiln::cached_window<Context, window, Type> | kiln::scale(scale));
    else
      return attend(x, angles, cached | kiln::scale(scale));
  }

private:
  constexpr auto attend(const kiln::tensor auto &x, const kiln::tensor auto &angles, const auto &options) const {
    auto q = kiln::rotary<S.heads>(normed<S.heads>(q_proj(x), q_norm), angles);
    auto k = kiln::rotary<S.key_value_heads>(normed<S.key_value_heads>(k_proj(x), k_norm), angles);
    return o_proj(kiln::attention<S.heads, S.key_value_heads>(q, k, v_proj(x), options));
  }

  /// Applies the norm to each head of x.
  template <int Heads, kiln::tensor X> static constexpr auto normed(const X &x, const auto &norm) {
    constexpr auto shape = X::shape;
    if constexpr (X::rank == 2)
      return kiln::reshape<shape[0], shape[1]>(norm(kiln::reshape<shape[0], Heads, S.head>(x)));
    else
      return kiln::reshape<shape[0], shape[1], shape[2]>(norm(kiln::reshape<shape[0], shape[1], Heads, S.head>(x)));
  }
};

template <Shape S> struct Mlp : kiln::Layer<Mlp<S>> {
  using kiln::Layer<Mlp>::Layer;
  kiln::Linear<S.width, S.hidden, false> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  kiln::Linear<S.hidden, S.width, false> down_proj{"down_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    return down_proj(kiln::gelu_tanh(gate_proj(x)) * up_proj(x));
  }
};

/// A layer of either kind. `local` and `global` are the rotary angles of both.
template <Shape S, bool IsLocal> struct Block {
  Norm<S, S.width> before{"input_layernorm"}, after{"post_attention_layernorm"};
  Norm<S, S.width> before_mlp{"pre_feedforward_layernorm"}, after_mlp{"post_feedforward_layernorm"};
  Attention<S, IsLocal> attention{"self_attn"};
  Mlp<S> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &local, const kiln::tensor auto &global,
                         auto... cached) const {
    auto attended = [&] {
      if constexpr (IsLocal)
        return attention(before(x), local, cached...);
      else
        return attention(before(x), global, cached...);
    }();
    auto y = x + after(attended);
    return y + after_mlp(mlp(before_mlp(y)));
  }
};

/// The layers, with the prefix "model".
template <Shape S> struct Decoder : kiln::Layer<Decoder<S>> {
  using kiln::Layer<Decoder>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embed_tokens{"embed_tokens"};
  kiln::Stack<S.layers, kiln::Pattern<S.period - 1, Block<S, true>, 1, Block<S, false>>> layers{"layers"};
  Norm<S, S.width> norm{"norm"};

  constexpr auto forward(const kiln::tensor auto &tokens) const {
    auto positions = kiln::positions(tokens);
    return norm(layers(embedded(tokens), local_angles(positions), global_angles(positions)));
  }
  template <kiln::Dim Context, kiln::CacheType Type>
  constexpr auto forward(const kiln::tensor auto &tokens, kiln::Cached<Context, Type> cached) const {
    auto positions = kiln::positions_in<Context>(tokens);
    auto x = layers(embedded(tokens), local_angles(positions), global_angles(positions), cached);
    return norm(kiln::last<0, 1>(x));
  }

private:
  constexpr auto embedded(const kiln::tensor auto &tokens) const { return embed_tokens(tokens) * S.embedding_scale; }
  static constexpr auto local_angles(const kiln::tensor auto &positions) {
    return kiln::sinusoidal<S.head>(positions, S.local_base);
  }
  static constexpr auto global_angles(const kiln::tensor auto &positions) {
    if constexpr (S.scaling == kiln::RotaryScaling())
      return kiln::sinusoidal<S.head>(positions, S.base);
    else
      return kiln::sinusoidal(positions, kiln::frequencies<S.head>(S.base).scaled(S.scaling));
  }
};

/// Text generation: every call appends tokens to the context, with a KV cache, and returns the logits of the next
/// token. `decode` is `prefill` of one token.
template <Shape S> struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, std::min<std::int64_t>(S.context, 256)},
      context{"context", tokens, S.context};
  Decoder<S> model{"model"};

  constexpr auto extend(const kiln::tensor auto &x) const {
    return kiln::logits(model(x, kiln::cached<context>), model.embed_tokens);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return extend(x); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return extend(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"})};
  }
};

} // namespace gemma3
