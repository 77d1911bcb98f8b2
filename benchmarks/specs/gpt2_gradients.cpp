// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 small as it is trained: the loss of the next tokens, and its gradients.
#include "gpt2/gpt2.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim batch_8{"batch", 1, 8}, length_512{"length", 1, 512};

struct Gpt2Gradients : kiln::Model {
  kiln::Embedding<50257, 768> wte{"wte"};
  kiln::Embedding<1024, 768> wpe{"wpe"};
  kiln::Stack<12, specs::Gpt2Block<768, 12>> h{"h"};
  kiln::LayerNorm<768> ln_f{"ln_f"};

  using Tokens = kiln::Tensor<kiln::i32, batch_8, length_512>;
  constexpr auto loss(Tokens tokens, Tokens targets) const {
    auto y = ln_f(h(wte(tokens) + wpe(kiln::positions(tokens))));
    return kiln::cross_entropy(kiln::logits(y, wte), targets);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::gradients("gradients", &Gpt2Gradients::loss, {"tokens", "targets"}, {"loss"})};
  }
};

KILN_MODEL(gpt2_gradients, Gpt2Gradients)
