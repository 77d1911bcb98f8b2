// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 (Radford et al. 2019) under the tensor names of its checkpoints: Conv1D weights [in, out], a fused projection
// for Q, K and V, tanh approximation of GELU, tied logits.
#pragma once

#include "kiln/dsl.h"
#include "shapes.h"

namespace specs {

inline constexpr kiln::Dim tokens_1024{"tokens", 1, 1024}, context_1024{"context", tokens_1024, 1024};

template <std::int64_t In, std::int64_t Out> using Conv1D = kiln::Linear<In, Out, true, kiln::WeightOrder::in_out>;

template <std::int64_t Width, int Heads> struct Gpt2Attention : kiln::Layer<Gpt2Attention<Width, Heads>> {
  using kiln::Layer<Gpt2Attention>::Layer;
  Conv1D<Width, 3 * Width> c_attn{"c_attn"};
  Conv1D<Width, Width> c_proj{"c_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto qkv = c_attn(x);
    return c_proj(kiln::attention<Heads>(part<0>(qkv), part<1>(qkv), part<2>(qkv), kiln::causal));
  }
  /// `x` are the last rows of the context; keys and values of the others are in the KV cache.
  constexpr auto forward(const kiln::tensor auto &x, auto cached) const {
    auto qkv = c_attn(x);
    return c_proj(kiln::attention<Heads>(part<0>(qkv), part<1>(qkv), part<2>(qkv), cached));
  }

private:
  template <int Number> static constexpr auto part(const kiln::tensor auto &qkv) {
    return kiln::slice<-1, Number * Width, Width>(qkv);
  }
};

template <std::int64_t Width, std::int64_t Hidden, kiln::Activation A>
struct Gpt2Mlp : kiln::Layer<Gpt2Mlp<Width, Hidden, A>> {
  using kiln::Layer<Gpt2Mlp>::Layer;
  Conv1D<Width, Hidden> c_fc{"c_fc"};
  Conv1D<Hidden, Width> c_proj{"c_proj"};

  constexpr auto forward(const kiln::tensor auto &x) const { return c_proj(kiln::activate<A>(c_fc(x))); }
};

struct Gpt2Options {
  std::int64_t hidden; // of the MLPs
  kiln::Activation activation = kiln::Activation::gelu_tanh;
  double epsilon = 1e-5; // a member, since a double is no template argument for clang 16 and 17
};

template <std::int64_t Width, int Heads, Gpt2Options Options = Gpt2Options{.hidden = 4 * Width}> struct Gpt2Block {
  kiln::LayerNorm<Width> ln_1{"ln_1", Options.epsilon}, ln_2{"ln_2", Options.epsilon};
  Gpt2Attention<Width, Heads> attn{"attn"};
  Gpt2Mlp<Width, Options.hidden, Options.activation> mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, auto... cached) const {
    auto y = x + attn(ln_1(x), cached...);
    return y + mlp(ln_2(y));
  }
};

template <std::int64_t Layers, std::int64_t Width, int Heads, kiln::Dim Tokens = tokens_1024,
          std::int64_t Vocabulary = 50257>
struct Gpt2 : kiln::Model {
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  kiln::Embedding<Vocabulary, Width> wte{"wte"};
  kiln::Embedding<Tokens.max(), Width> wpe{"wpe"};
  kiln::Stack<Layers, Gpt2Block<Width, Heads>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, Tokens> tokens) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::logits(ln_f(h(x)), wte);
  }
};

/// Text generation: every call appends tokens to the context, with a KV cache, and returns the logits of the next
/// token. `decode` is `prefill` of one token; `verify` returns the logits after each of them.
template <std::int64_t Layers, std::int64_t Width, int Heads, kiln::Dim Tokens = tokens_1024,
          kiln::Dim Context = context_1024, std::int64_t Vocabulary = 50257,
          Gpt2Options Options = Gpt2Options{.hidden = 4 * Width}>
struct Gpt2Writer : kiln::Model {
  kiln::Embedding<Vocabulary, Width> wte{"wte"};
  kiln::Embedding<Context.max(), Width> wpe{"wpe"};
  kiln::Stack<Layers, Gpt2Block<Width, Heads, Options>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f", Options.epsilon};

  constexpr auto layers(const kiln::tensor auto &tokens) const {
    return h(wte(tokens) + wpe(kiln::positions_in<Context>(tokens)), kiln::cached<Context>);
  }
  constexpr auto extend(const kiln::tensor auto &tokens) const {
    return kiln::logits(ln_f(kiln::last<0, 1>(layers(tokens))), wte);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, Tokens> tokens) const { return extend(tokens); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return extend(token); }
  constexpr auto verify(kiln::Tensor<kiln::i32, Tokens> tokens) const {
    return kiln::logits(ln_f(layers(tokens)), wte);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Gpt2Writer::prefill, {"tokens"}, {"logits"}).batched(32),
                      kiln::entry("decode", &Gpt2Writer::decode, {"token"}, {"logits"}).batched(32),
                      kiln::entry("verify", &Gpt2Writer::verify, {"tokens"}, {"logits"})};
  }
};

template <Gpt2Shape S> inline constexpr kiln::Dim gpt2_tokens{"tokens", 1, S.context};
template <Gpt2Shape S> inline constexpr kiln::Dim gpt2_context{"context", gpt2_tokens<S>, S.context};
template <Gpt2Shape S> using Gpt2Of = Gpt2<S.layers, S.width, S.heads, gpt2_tokens<S>, S.vocabulary>;
template <Gpt2Shape S, kiln::Activation A = kiln::Activation::gelu_tanh>
using Gpt2WriterOf = Gpt2Writer<S.layers, S.width, S.heads, gpt2_tokens<S>, gpt2_context<S>, S.vocabulary,
                                Gpt2Options{.hidden = S.hidden, .activation = A, .epsilon = S.epsilon}>;

using Gpt2Small = Gpt2Of<gpt2_small>;
using Gpt2Medium = Gpt2Of<gpt2_medium>;
using Gpt2Large = Gpt2Of<gpt2_large>;
using Gpt2Xl = Gpt2Of<gpt2_xl>;

} // namespace specs
