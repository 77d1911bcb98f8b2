// SPDX-License-Identifier: Apache-2.0
//
// Mamba (Gu and Dao 2023) with the tensor names of its published checkpoints: a causal convolution, then a linear
// recurrence whose step sizes and whose input and output vectors are functions of the token. Two states of fixed size
// replace a KV cache, so a text may have any length.
#pragma once

#include "kiln/dsl.h"

namespace mamba {

struct Shape {
  std::int64_t vocabulary, layers, width;
  std::int64_t inner;        // channels of the recurrence
  std::int64_t state;        // numbers that each channel remembers
  std::int64_t rank;         // of the projection to step sizes
  std::int64_t kernel = 4;   // tokens that the convolution reads
  bool is_tied = true;       // the logits use the embedding's weights
  bool has_bias = false;     // biases of in_proj and out_proj
  bool has_conv_bias = true; // bias of the convolution
  double epsilon = 1e-5;     // last: clang 22 corrupts members after a double in a template argument
};

/// The step size of each channel before softplus. The initial bias is such that a channel remembers some ten tokens.
template <Shape S> struct StepSize : kiln::Layer<StepSize<S>> {
  using kiln::Layer<StepSize>::Layer;

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto weight = kiln::parameter<kiln::f32, S.inner, S.rank>(x, "weight");
    auto bias = kiln::parameter<kiln::f32, S.inner>(x, "bias", kiln::Initial::constant(-3));
    return kiln::linear(x, weight, bias);
  }
};

template <Shape S> struct Mixer : kiln::Layer<Mixer<S>> {
  using kiln::Layer<Mixer>::Layer;
  kiln::Linear<S.width, 2 * S.inner, S.has_bias> in_proj{"in_proj"};
  kiln::Conv1d<S.inner, S.inner, S.kernel, kiln::Conv1dOptions{.groups = S.inner}, S.has_conv_bias> conv1d{"conv1d"};
  kiln::Linear<S.inner, S.rank + 2 * S.state, false> x_proj{"x_proj"};
  StepSize<S> dt_proj{"dt_proj"};
  kiln::Linear<S.inner, S.width, S.has_bias> out_proj{"out_proj"};

  /// x [tokens, width] continues the text of the previous call; x [batch, tokens, width] are whole texts.
  template <kiln::tensor X> constexpr auto forward(const X &x) const {
    auto both = in_proj(x);
    auto values = kiln::slice<-1, 0, S.inner>(both);
    auto gate = kiln::silu(kiln::slice<-1, S.inner, S.inner>(both));
    if constexpr (X::rank == 2)
      return out_proj(continued(values) * gate);
    else
      return out_proj(whole(values) * gate);
  }

private:
  constexpr auto continued(const kiln::tensor auto &values) const {
    const kiln::State<kiln::f32, S.kernel - 1, S.inner> window("conv");
    const kiln::State<kiln::f32, S.inner, S.state> memory("ssm");
    auto longer = kiln::concat<0>(window.read(values), values);
    window.store(kiln::last<0, S.kernel - 1>(longer));
    auto x = kiln::silu(conv1d(longer));
    auto [last, y] = selective_scan(memory.read(values), x);
    memory.store(last);
    return y;
  }

  template <kiln::tensor X> constexpr auto whole(const X &values) const {
    constexpr kiln::Dim batch = X::shape[0];
    auto x = kiln::transpose<1, 0, 2>(kiln::silu(conv1d(kiln::pad<1, S.kernel - 1, 0>(values))));
    auto [last, y] = selective_scan(kiln::zeros<kiln::f32, batch, S.inner, S.state>(values), x);
    return kiln::transpose<1, 0, 2>(y);
  }

  /// Algorithm 2 of the paper; as in released models, the input is multiplied by the step size. x [tokens, ..., inner]
  /// and the state [..., inner, state] to the last state and y [tokens, ..., inner].
  constexpr auto selective_scan(const kiln::tensor auto &initial, const kiln::tensor auto &x) const {
    auto all = x_proj(x);
    auto step = kiln::softplus(dt_proj(kiln::slice<-1, 0, S.rank>(all)));
    auto b = kiln::slice<-1, S.rank, S.state>(all), c = kiln::slice<-1, S.rank + S.state, S.state>(all);
    auto a = -kiln::exp(kiln::parameter<kiln::f32, S.inner, S.state>(x, "A_log", kiln::Initial::uniform(1.5)));
    auto skip = kiln::parameter<kiln::f32, S.inner>(x, "D", kiln::Initial::ones());
    auto [last, y] = kiln::scan(initial, std::tuple{step, step * x, b, c}, [&](auto h, auto here) {
      auto [dt, input, write, read] = here;
      auto next = h * kiln::exp(kiln::unsqueeze<-1>(dt) * a) + kiln::unsqueeze<-1>(input) * kiln::unsqueeze<-2>(write);
      return std::pair{next, kiln::sum<-1>(next * kiln::unsqueeze<-2>(read))};
    });
    return std::pair{last, y + x * skip};
  }
};

template <Shape S> struct Block {
  kiln::RmsNorm<S.width> norm{"norm", S.epsilon};
  Mixer<S> mixer{"mixer"};

  constexpr auto forward(const kiln::tensor auto &x) const { return x + mixer(norm(x)); }
};

/// The layers, with the prefix "backbone".
template <Shape S> struct Backbone : kiln::Layer<Backbone<S>> {
  using kiln::Layer<Backbone>::Layer;
  kiln::Embedding<S.vocabulary, S.width> embeddings{"embeddings"};
  kiln::Stack<S.layers, Block<S>> layers{"layers"};
  kiln::RmsNorm<S.width> norm_f{"norm_f", S.epsilon};

  constexpr auto forward(const kiln::tensor auto &tokens) const { return norm_f(layers(embeddings(tokens))); }
};

/// Text generation: every call reads tokens and returns the logits of the next one. The states begin with zeros, and
/// cannot be rewound: another text is another session. `decode` is `prefill` of one token.
template <Shape S> struct Writer : kiln::Model {
  static constexpr kiln::Dim tokens{"tokens", 1, 256};
  Backbone<S> backbone{"backbone"};
  kiln::Linear<S.width, S.vocabulary, false> lm_head{"lm_head"};

  constexpr auto scores(const kiln::tensor auto &rows) const {
    if constexpr (S.is_tied)
      return kiln::logits(rows, backbone.embeddings);
    else
      return lm_head(rows);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, tokens> x) const { return scores(kiln::last<0, 1>(backbone(x))); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> x) const { return scores(backbone(x)); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Writer::prefill, {"tokens"}, {"logits"}),
                      kiln::entry("decode", &Writer::decode, {"token"}, {"logits"})};
  }
};

} // namespace mamba
