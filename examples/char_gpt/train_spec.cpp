// SPDX-License-Identifier: Apache-2.0
//
// The model of spec.cpp as it is trained: a step on windows of 256 characters, and the loss alone.
#include "vocabulary.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"windows", 1, 32};

template <int Layers, int Width, int Heads> struct CharGptTraining : kiln::Model {
  static constexpr int characters = static_cast<int>(char_gpt::vocabulary.size()), context = 256;
  static constexpr kiln::BlockOptions options{.activation = kiln::Activation::gelu_tanh, .causal = true};

  kiln::Embedding<characters, Width> wte{"wte"};
  kiln::Embedding<context, Width> wpe{"wpe"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, 4 * Width, options>> h{"h"};
  kiln::LayerNorm<Width> ln_f{"ln_f"};

  using Windows = kiln::Tensor<kiln::i32, B, context>;
  constexpr auto loss(Windows tokens, Windows targets) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::cross_entropy(kiln::logits(ln_f(h(x)), wte), targets);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &CharGptTraining::loss, {"tokens", "targets"}, {"loss"},
                                  kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
                          .clipped(1)
                          .without_decay({"*.bias", "*norm?.weight", "ln_f.weight"}),
                      kiln::entry("evaluate", &CharGptTraining::loss, {"tokens", "targets"}, {"loss"})};
  }
};

using Model = CharGptTraining<4, 128, 4>;
KILN_MODEL(char_gpt_train, Model)
