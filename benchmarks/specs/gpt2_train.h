// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 small for training: a step on windows of text.
#pragma once

#include "models/gpt2/gpt2.h"

namespace specs {

inline constexpr kiln::Dim train_batch{"batch", 1, 8}, train_length{"length", 1, 512};

struct Gpt2Train : kiln::Model {
  kiln::Embedding<50257, 768> wte{"wte"};
  kiln::Embedding<1024, 768> wpe{"wpe"};
  kiln::Stack<12, Gpt2Block<768, 12>> h{"h"};
  kiln::LayerNorm<768> ln_f{"ln_f"};

  using Tokens = kiln::Tensor<kiln::i32, train_batch, train_length>;
  constexpr auto loss(Tokens tokens, Tokens targets) const {
    auto y = ln_f(h(wte(tokens) + wpe(kiln::positions(tokens))));
    return kiln::cross_entropy(kiln::logits(y, wte), targets);
  }
  static constexpr auto entries() {
    constexpr auto train = [](const char *name) {
      return kiln::train(name, &Gpt2Train::loss, {"tokens", "targets"}, {"loss"}, kiln::AdamW{});
    };
    return std::tuple{train("train"), train("train_again").checkpointed(),
                      kiln::entry("loss", &Gpt2Train::loss, {"tokens", "targets"}, {"loss"})};
  }
};

} // namespace specs
