// SPDX-License-Identifier: Apache-2.0
// A decoder of six layers, and next to it a stack of seven layers: no number of stages divides both.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

constexpr kiln::Dim T{"tokens", 1, 64}, C{"context", T, 64};
constexpr std::int64_t vocabulary = 99, width = 64;

struct Shift : kiln::Layer<Shift> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const { return x + kiln::tanh(linear(x)); }
  kiln::Linear<width, width> linear{"linear"};
};

struct Uneven : kiln::Model {
  static constexpr kiln::BlockOptions options{.activation = kiln::Activation::gelu_tanh, .causal = true};
  kiln::Embedding<vocabulary, width> words{"words"};
  kiln::Stack<6, kiln::EncoderBlock<width, 2, 96, options>> h{"h"};
  kiln::LayerNorm<width> norm{"norm"};
  kiln::Stack<7, Shift> deep{"deep"};
  kiln::Linear<width, 5> classes{"classes"};

  constexpr auto extend(const kiln::tensor auto &tokens) const {
    return kiln::logits(norm(kiln::last<0, 1>(h(words(tokens), kiln::cached<C>))), words);
  }
  constexpr auto prefill(kiln::Tensor<kiln::i32, T> tokens) const { return extend(tokens); }
  constexpr auto decode(kiln::Tensor<kiln::i32, 1> token) const { return extend(token); }
  constexpr auto classify(kiln::Tensor<kiln::f32, 3, width> x) const { return classes(deep(x)); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &Uneven::prefill, {"tokens"}, {"logits"}).batched(4),
                      kiln::entry("decode", &Uneven::decode, {"token"}, {"logits"}).batched(4),
                      kiln::entry("classify", &Uneven::classify, {"x"}, {"y"})};
  }
};

} // namespace

KILN_MODEL(uneven, Uneven)
