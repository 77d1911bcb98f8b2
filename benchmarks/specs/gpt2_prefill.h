// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 small's prefill, the start of text generation: takes all tokens and returns the logits of the requested
// positions.
#pragma once

#include "models/gpt2/gpt2.h"

namespace specs {

struct Gpt2Prefill : kiln::Model {
  static constexpr kiln::Names inputs{"tokens", "last"}, outputs{"logits"};
  kiln::Embedding<50257, 768> wte{"wte"};
  kiln::Embedding<1024, 768> wpe{"wpe"};
  kiln::Stack<12, Gpt2Block<768, 12>> h{"h"};
  kiln::LayerNorm<768> ln_f{"ln_f"};

  constexpr auto forward(kiln::Tensor<kiln::i32, tokens_1024> tokens, kiln::Tensor<kiln::i32, 1> last) const {
    auto y = h(wte(tokens) + wpe(kiln::positions(tokens)));
    return kiln::logits(ln_f(kiln::gather<0>(y, last)), wte);
  }
};

} // namespace specs
