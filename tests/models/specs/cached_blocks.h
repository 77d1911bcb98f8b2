// SPDX-License-Identifier: Apache-2.0
//
// A small decoder for each type of a KV cache: two blocks, then grouped-query attention with two query heads per key
// head. It runs over all tokens at once without a cache, and step by step.
#pragma once

#include "kiln/dsl.h"

namespace specs {

inline constexpr kiln::Dim cached_tokens{"tokens", 1, 300}, cached_context{"context", cached_tokens, 300};

struct Shared : kiln::Layer<Shared> {
  using kiln::Layer<Shared>::Layer;
  kiln::Linear<36, 48> q{"q"};
  kiln::Linear<36, 24> k{"k"}, v{"v"};
  kiln::Linear<48, 36> out{"out"};

  constexpr auto forward(const kiln::tensor auto &x, const auto &options) const {
    return x + out(kiln::attention<4, 2>(q(x), k(x), v(x), options));
  }
};

template <kiln::CacheType Type> struct CachedDecoder : kiln::Layer<CachedDecoder<Type>> {
  using kiln::Layer<CachedDecoder<Type>>::Layer;
  static constexpr std::int64_t width = 36, vocabulary = 53;
  kiln::Embedding<vocabulary, width> words{"words"};
  kiln::Embedding<cached_context.max(), width> places{"places"};
  kiln::Stack<2, kiln::EncoderBlock<width, 3, 2 * width, kiln::BlockOptions{.causal = true}>> h{"h"};
  Shared shared{"shared"};
  kiln::LayerNorm<width> norm{"norm"};

  constexpr auto forward(const kiln::tensor auto &tokens, const kiln::tensor auto &positions,
                         const auto &options) const {
    auto x = h(words(tokens) + places(positions), options);
    return kiln::logits(norm(shared(x, options)), words);
  }
  constexpr auto all(const kiln::tensor auto &tokens) const {
    return (*this)(tokens, kiln::positions(tokens), kiln::causal);
  }
  constexpr auto step(const kiln::tensor auto &tokens) const {
    return (*this)(tokens, kiln::positions_in<cached_context>(tokens), kiln::cached<cached_context, Type>);
  }
};

/// Only attention, with four query heads and two key and value heads, and an int8 cache.
struct Look : kiln::Layer<Look> {
  using kiln::Layer<Look>::Layer;
  constexpr auto forward(const kiln::tensor auto &q, const kiln::tensor auto &k, const kiln::tensor auto &v) const {
    return kiln::attention<4, 2>(q, k, v, kiln::cached<cached_context, kiln::int8>);
  }
};

/// Attention to a window of 37 rows with limited scores: over all rows at once, from a cache of all rows, and from one
/// that has the window's rows only.
struct WindowedLook : kiln::Layer<WindowedLook> {
  using kiln::Layer<WindowedLook>::Layer;
  constexpr auto forward(const kiln::tensor auto &q, const kiln::tensor auto &k, const kiln::tensor auto &v,
                         const auto &options) const {
    return kiln::attention<4, 2>(q, k, v, options | kiln::softcap(3));
  }
};

struct CachedBlocks : kiln::Model {
  using Tokens = kiln::Tensor<kiln::i32, cached_tokens>;
  using Queries = kiln::Tensor<kiln::f32, cached_tokens, 20>;
  using Rows = kiln::Tensor<kiln::f32, cached_tokens, 10>;
  CachedDecoder<kiln::CacheType{}> same{"same"};
  CachedDecoder<kiln::f16> half{"half"};
  CachedDecoder<kiln::bf16> bfloat{"bfloat"};
  CachedDecoder<kiln::int8> whole{"whole"};
  Look looking{"looking"};
  WindowedLook windowed{"windowed"}, sliding{"sliding"};

  constexpr auto all_same(Tokens tokens) const { return same.all(tokens); }
  constexpr auto all_half(Tokens tokens) const { return half.all(tokens); }
  constexpr auto all_bfloat(Tokens tokens) const { return bfloat.all(tokens); }
  constexpr auto all_whole(Tokens tokens) const { return whole.all(tokens); }
  constexpr auto step_same(Tokens tokens) const { return same.step(tokens); }
  constexpr auto step_half(Tokens tokens) const { return half.step(tokens); }
  constexpr auto step_bfloat(Tokens tokens) const { return bfloat.step(tokens); }
  constexpr auto step_whole(Tokens tokens) const { return whole.step(tokens); }
  constexpr auto look(Queries q, Rows k, Rows v) const { return looking(q, k, v); }
  constexpr auto all_windowed(Queries q, Rows k, Rows v) const {
    return windowed(q, k, v, kiln::causal | kiln::window(37));
  }
  constexpr auto step_windowed(Queries q, Rows k, Rows v) const {
    return windowed(q, k, v, kiln::cached<cached_context> | kiln::window(37));
  }
  constexpr auto step_sliding(Queries q, Rows k, Rows v) const {
    return sliding(q, k, v, kiln::cached_window<cached_context, 37>);
  }

  static constexpr auto entries() {
    using Self = CachedBlocks;
    return std::tuple{kiln::entry("all_same", &Self::all_same, {"tokens"}, {"logits"}),
                      kiln::entry("all_half", &Self::all_half, {"tokens"}, {"logits"}),
                      kiln::entry("all_bfloat", &Self::all_bfloat, {"tokens"}, {"logits"}),
                      kiln::entry("all_whole", &Self::all_whole, {"tokens"}, {"logits"}),
                      kiln::entry("step_same", &Self::step_same, {"tokens"}, {"logits"}),
                      kiln::entry("step_half", &Self::step_half, {"tokens"}, {"logits"}),
                      kiln::entry("step_bfloat", &Self::step_bfloat, {"tokens"}, {"logits"}),
                      kiln::entry("step_whole", &Self::step_whole, {"tokens"}, {"logits"}),
                      kiln::entry("look", &Self::look, {"q", "k", "v"}, {"y"}),
                      kiln::entry("all_windowed", &Self::all_windowed, {"q", "k", "v"}, {"y"}),
                      kiln::entry("step_windowed", &Self::step_windowed, {"q", "k", "v"}, {"y"}),
                      kiln::entry("step_sliding", &Self::step_sliding, {"q", "k", "v"}, {"y"})};
  }
};

} // namespace specs
