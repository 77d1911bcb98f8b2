// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the model: a step on windows of 256 characters, and the loss by itself.
#include "model.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"windows", 1, 32};

struct Training : CharGpt<4, 128, 4> {
  using Windows = kiln::Tensor<kiln::i32, B, 256>;
  constexpr auto loss(Windows tokens, Windows targets) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::cross_entropy(kiln::logits(ln_f(h(x)), wte), targets);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &Training::loss, {"tokens", "targets"}, {"loss"},
                                  kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.05})
                          .clipped(1)
                          .without_decay({"*.bias", "*norm*.weight", "ln_f.weight"}),
                      kiln::entry("evaluate", &Training::loss, {"tokens", "targets"}, {"loss"})};
  }
};

KILN_MODEL(char_gpt_train, Training)
