// SPDX-License-Identifier: Apache-2.0
//
// Attention from one query to several heads, each with its weights as a second output. Projections have no bias, so
// that they are the matrices of the textbook.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 4}, N{"inputs", 1, 64}, M{"queries", 1, 48};

template <std::int64_t In, std::int64_t Out> using Matrix = kiln::Linear<In, Out, false>;

/// Keys and values are projections of the inputs, queries of the inputs or of a separate argument.
template <std::int64_t In, std::int64_t Depth, std::int64_t Out>
struct ProjectedAttention : kiln::Layer<ProjectedAttention<In, Depth, Out>> {
  using kiln::Layer<ProjectedAttention>::Layer;
  Matrix<In, Depth> query{"query"}, key{"key"};
  Matrix<In, Out> value{"value"};

  template <class Mask = kiln::None>
  constexpr auto forward(const kiln::tensor auto &x, const kiln::AttentionOptions<Mask> &options = {}) const {
    return attend(query(x), x, options);
  }
  constexpr auto forward(const kiln::tensor auto &queries, const kiln::tensor auto &x) const {
    return attend(queries, x, kiln::AttentionOptions<>());
  }

private:
  constexpr auto attend(const kiln::tensor auto &q, const kiln::tensor auto &x, const auto &options) const {
    auto k = key(x);
    return kiln::outputs(kiln::attention<1>(q, k, value(x), options), kiln::attention_weights<1>(q, k, options));
  }
};

/// Attention over the pixels of an image between 1 x 1 convolutions, with a residual connection (Zhang et al. 2019,
/// SAGAN): scores are not scaled.
template <std::int64_t Channels> struct ImageAttention : kiln::Layer<ImageAttention<Channels>> {
  using kiln::Layer<ImageAttention>::Layer;
  kiln::Conv2d<Channels, Channels / 8, 1> query{"query"}, key{"key"};
  kiln::Conv2d<Channels, Channels / 2, 1> value{"value"};
  kiln::Conv2d<Channels / 2, Channels, 1> out{"out"};

  template <kiln::Dim Batch, kiln::Dim Height, kiln::Dim Width>
  constexpr auto forward(const kiln::Tensor<kiln::f32, Batch, Height, Width, kiln::Dim(Channels)> &x) const {
    auto rows = []<std::int64_t Depth>(const auto &image) {
      return kiln::reshape<Batch, Height * Width, Depth>(image);
    };
    auto q = rows.template operator()<Channels / 8>(query(x)), k = rows.template operator()<Channels / 8>(key(x));
    auto v = rows.template operator()<Channels / 2>(value(x));
    auto seen = kiln::reshape<Batch, Height, Width, Channels / 2>(kiln::attention<1>(q, k, v, kiln::scale(1)));
    auto gamma = kiln::parameter<kiln::f32, 1>(x, "gamma");
    return kiln::outputs(x + out(seen) * gamma, kiln::attention_weights<1>(q, k, kiln::scale(1)));
  }
};

struct AttentionLayers : kiln::Model {
  using Inputs = kiln::Tensor<kiln::f32, B, N, 24>;
  using Query = kiln::Tensor<kiln::f32, B, 1, 24>;

  kiln::AdditiveAttention<20, 24, 32> perceptron{"additive"};
  ProjectedAttention<24, 20, 28> keys_values{"keys_values"}, self{"self"}, sum{"sum"};
  ProjectedAttention<32, 20, 28> joined{"joined"};
  kiln::Embedding<64, 24> place{"place"};
  kiln::MultiHeadAttention<24, 3> heads{"heads"};
  ImageAttention<24> image{"image"};

  // One query.
  constexpr auto additive(kiln::Tensor<kiln::f32, B, 20> query, Inputs x) const {
    auto weights = perceptron.weights(kiln::reshape<B, 1, 20>(query), perceptron.keys(x));
    return kiln::outputs(kiln::reshape<B, 24>(kiln::matmul(weights, x)), kiln::reshape<B, N>(weights));
  }
  constexpr auto dot(Query query, Inputs x) const {
    return kiln::outputs(kiln::attention<1>(query, x, x, kiln::scale(1)),
                         kiln::attention_weights<1>(query, x, kiln::scale(1)));
  }
  constexpr auto scaled_dot(Query query, Inputs x) const {
    return kiln::outputs(kiln::attention<1>(query, x, x), kiln::attention_weights<1>(query, x));
  }
  // Several queries, keys and values.
  constexpr auto many_queries(kiln::Tensor<kiln::f32, B, M, 20> queries, Inputs x) const {
    return keys_values(queries, x);
  }
  constexpr auto self_attention(Inputs x) const { return self(x); }
  // Positions: learned or sinusoidal, added or in separate columns.
  constexpr auto learned_positions(Inputs x) const { return sum(x + place(kiln::positions<1>(x))); }
  constexpr auto sine_positions(Inputs x) const { return sum(x + kiln::sinusoidal<24>(kiln::positions<1>(x))); }
  constexpr auto joined_positions(kiln::Tensor<kiln::f32, N, 24> x) const {
    return joined(kiln::concat<-1>(x, kiln::sinusoidal<8>(kiln::positions<0>(x))));
  }
  // Masks: causal, or additive; -infinity masks an input.
  constexpr auto causal(Inputs x) const { return self(x, kiln::causal); }
  constexpr auto masked(Inputs x, kiln::Tensor<kiln::f32, N, N> mask) const { return self(x, kiln::mask(mask)); }
  // Heads.
  constexpr auto multi_head(Inputs x) const { return kiln::outputs(heads(x), heads.weights(x)); }
  // The pixels of an image.
  constexpr auto image_attention(kiln::Tensor<kiln::f32, B, 6, 7, 24> x) const { return image(x); }
  // Words as vectors of two numbers, which are queries, keys and values at once.
  constexpr auto words(kiln::Tensor<kiln::f32, N, 2> x) const {
    return kiln::outputs(kiln::attention_scores<1>(x, x), kiln::attention_weights<1>(x, x),
                         kiln::attention<1>(x, x, x));
  }

  static constexpr auto entries() {
    using Self = AttentionLayers;
    return std::tuple{
        kiln::entry("additive", &Self::additive, {"query", "x"}, {"y", "weights"}),
        kiln::entry("dot", &Self::dot, {"query", "x"}, {"y", "weights"}),
        kiln::entry("scaled_dot", &Self::scaled_dot, {"query", "x"}, {"y", "weights"}),
        kiln::entry("many_queries", &Self::many_queries, {"queries", "x"}, {"y", "weights"}),
        kiln::entry("self_attention", &Self::self_attention, {"x"}, {"y", "weights"}),
        kiln::entry("learned_positions", &Self::learned_positions, {"x"}, {"y", "weights"}),
        kiln::entry("sine_positions", &Self::sine_positions, {"x"}, {"y", "weights"}),
        kiln::entry("joined_positions", &Self::joined_positions, {"x"}, {"y", "weights"}),
        kiln::entry("causal", &Self::causal, {"x"}, {"y", "weights"}),
        kiln::entry("masked", &Self::masked, {"x", "mask"}, {"y", "weights"}),
        kiln::entry("multi_head", &Self::multi_head, {"x"}, {"y", "weights"}),
        kiln::entry("image_attention", &Self::image_attention, {"x"}, {"y", "weights"}),
        kiln::entry("words", &Self::words, {"x"}, {"scores", "weights", "y"}),
    };
  }
};

KILN_MODEL(attention_layers, AttentionLayers)
