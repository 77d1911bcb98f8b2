// SPDX-License-Identifier: Apache-2.0
//
// T5 (Raffel et al. 2020) and its later versions with the tensor names of published checkpoints: an encoder and a
// decoder without position embeddings. Attention adds a bias to its scores that depends on the distance of a key from
// its query.
#pragma once

#include "kiln/dsl.h"

#include <array>
#include <utility>

namespace t5 {

struct Shape {
  std::int64_t vocabulary, layers, decoder_layers, width;
  int heads;
  std::int64_t head; // width of a head
  std::int64_t hidden;
  std::int64_t source, target; // maximum lengths of the two texts
  int buckets;                 // buckets of distances; each has a bias for each head
  // Distances at which the buckets of several distances begin: in the encoder, where half of the buckets are for keys
  // after the query, and in the decoder.
  int encoder_count, decoder_count;
  std::array<int, 64> encoder_distances, decoder_distances;
  bool is_gated = false; // MLPs use gated gelu instead of relu
  bool is_tied = true;   // the rows of the embedding compute the logits
  double epsilon = 1e-6;
};

/// Computes the biases [heads, queries, keys] from the parameter `weight` [buckets, heads], for the positions of
/// queries and keys.
template <Shape S, bool IsDecoder> struct Distances : kiln::Layer<Distances<S, IsDecoder>> {
  using kiln::Layer<Distances>::Layer;
  static constexpr std::int64_t farthest = (IsDecoder ? S.target : S.source) - 1;
  static constexpr int count = IsDecoder ? S.decoder_count : S.encoder_count;
  static constexpr int exact = IsDecoder ? S.buckets / 2 : S.buckets / 4;

  template <kiln::tensor Q, kiln::tensor K> constexpr auto forward(const Q &queries, const K &keys) const {
    auto weight = kiln::parameter<kiln::f32, S.buckets, S.heads>(queries, "weight");
    auto distance = kiln::arange<2 * farthest + 1>(queries) - farthest; // distance of a key from its query
    auto scores = kiln::gather<0>(weight, bucket(distance, std::make_index_sequence<count>()));
    auto place = kiln::reshape<1, K::shape[0]>(keys) - kiln::reshape<Q::shape[0], 1>(queries) + farthest;
    return kiln::transpose<2, 0, 1>(kiln::gather<0>(scores, place));
  }

private:
  /// Returns the bucket of a distance. The first buckets have one distance each, later ones several.
  template <std::size_t... Later>
  static constexpr auto bucket(const kiln::tensor auto &distance, std::index_sequence<Later...>) {
    constexpr auto &begins = IsDecoder ? S.decoder_distances : S.encoder_distances;
    if constexpr (IsDecoder) {
      auto far = kiln::maximum(0 - distance, 0); // no key is after its query
      return (kiln::minimum(far, exact) + ... + kiln::cast<kiln::i32>(kiln::less_equal(begins[Later], far)));
    } else {
      auto far = kiln::abs(distance);
      auto first = kiln::minimum(far, exact) + kiln::cast<kiln::i32>(kiln::less(0, distance)) * (S.buckets / 2);
      return (first + ... + kiln::cast<kiln::i32>(kiln::less_equal(begins[Later], far)));
    }
  }
};

template <Shape S> struct Attention : kiln::Layer<Attention<S>> {
  using kiln::Layer<Attention>::Layer;
  static constexpr std::int64_t own = S.head * S.heads;
  kiln::Linear<S.width, own, false> q{"q"}, k{"k"}, v{"v"};
  kiln::Linear<own, S.width, false> o{"o"};

  /// In the encoder: `bias` is added to the scores.
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &bias) const {
    return o(kiln::attention<S.heads>(q(x), k(x), v(x), kiln::scale(1) | kiln::mask(bias)));
  }
  /// In the decoder: x has the last rows of the context; the KV cache has the keys and values of earlier calls.
  template <kiln::Dim Context>
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &bias, kiln::Cached<Context>) const {
    auto keys = State("keys").template append<Context>(k(x)), values = State("values").template append<Context>(v(x));
    return o(kiln::attention<S.heads>(q(x), keys, values, kiln::causal | kiln::scale(1) | kiln::mask(bias)));
  }
  /// Stores keys and values of the encoder's result, which the decoder reads afterwards.
  template <kiln::tensor M> constexpr auto forward(const M &memory, kiln::Remember) const {
    Memory("memory_keys").template append<M::shape[0]>(k(memory));
    Memory("memory_values").template append<M::shape[0]>(v(memory));
    return memory;
  }
  template <kiln::Dim Rows> constexpr auto forward(const kiln::tensor auto &x, kiln::Remembered<Rows>) const {
    auto keys = Memory("memory_keys").template read<Rows>(x), values = Memory("memory_values").template read<Rows>(x);
    return o(kiln::attention<S.heads>(q(x), keys, values, kiln::scale(1)));
  }

private:
  using State = kiln::State<kiln::f32, S.target, own>;
  using Memory = kiln::State<kiln::f32, S.source, own>;
};

template <Shape S> struct Mlp : kiln::Layer<Mlp<S>> {
  using kiln::Layer<Mlp>::Layer;
  kiln::Linear<S.width, S.hidden, false> wi{"wi"}, wi_0{"wi_0"}, wi_1{"wi_1"};
  kiln::Linear<S.hidden, S.width, false> wo{"wo"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    if constexpr (S.is_gated)
      return wo(kiln::gelu_tanh(wi_0(x)) * wi_1(x));
    else
      return wo(kiln::relu(wi(x)));
  }
};

template <Shape S> struct EncoderBlock {
  kiln::RmsNorm<S.width> before{"layer.0.layer_norm", S.epsilon}, between{"layer.1.layer_norm", S.epsilon};
  Attention<S> attention{"layer.0.SelfAttention"};
  Mlp<S> mlp{"layer.1.DenseReluDense"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &bias) const {
    auto y = x + attention(before(x), bias);
    return y + mlp(between(y));
  }
};

template <Shape S> struct DecoderBlock {
  kiln::RmsNorm<S.width> before{"layer.0.layer_norm", S.epsilon}, across{"layer.1.layer_norm", S.epsilon},
      between{"layer.2.layer_norm", S.epsilon};
  Attention<S> attention{"layer.0.SelfAttention"}, memory{"layer.1.EncDecAttention"};
  Mlp<S> mlp{"layer.2.DenseReluDense"};

  constexpr auto forward(const kiln::tensor auto &rows, kiln::Remember remember) const {
    return memory(rows, remember);
  }
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &bias, auto cached,
                         auto remembered) const {
    auto y = x + attention(before(x), bias, cached);
    auto z = y + memory(across(y), remembered);
    return z + mlp(between(z));
  }
};

/// `encode` reads a source and stores its keys and values for the decoder's layers; `step` appends tokens to the target
/// and returns the logits of the next token. The first token of a target is the padding token.
template <Shape S> struct Translator : kiln::Model {
  static constexpr kiln::Dim source{"source_tokens", 1, S.source}, target{"target_tokens", 1, S.target},
      context{"context", target, S.target};
  kiln::Embedding<S.vocabulary, S.width> shared{"shared"};
  Distances<S, false> encoder_distances{"encoder.distances"};
  Distances<S, true> decoder_distances{"decoder.distances"};
  kiln::Stack<S.layers, EncoderBlock<S>> encoder{"encoder.block"};
  kiln::Stack<S.decoder_layers, DecoderBlock<S>> decoder{"decoder.block"};
  kiln::RmsNorm<S.width> encoder_norm{"encoder.final_layer_norm", S.epsilon},
      decoder_norm{"decoder.final_layer_norm", S.epsilon};
  kiln::Linear<S.width, S.vocabulary, false> lm_head{"lm_head"};

  constexpr auto encode(kiln::Tensor<kiln::i32, source> tokens) const {
    auto places = kiln::positions(tokens);
    auto rows = encoder(shared(tokens), encoder_distances(places, places));
    return decoder(encoder_norm(rows), kiln::remember);
  }
  constexpr auto step(kiln::Tensor<kiln::i32, target> tokens) const {
    auto places = kiln::positions_in<context>(tokens);
    auto rows = decoder(shared(tokens), decoder_distances(places, kiln::arange<context>(tokens)), kiln::cached<context>,
                        kiln::remembered<source>);
    auto last = decoder_norm(kiln::last<0, 1>(rows));
    if constexpr (S.is_tied)
      return kiln::logits(last * (1 / kiln::square_root(S.width)), shared);
    else
      return lm_head(last);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("encode", &Translator::encode, {"source"}, {"memory"}),
                      kiln::entry("step", &Translator::step, {"target"}, {"logits"})};
  }
};

} // namespace t5
