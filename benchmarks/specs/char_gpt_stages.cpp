// SPDX-License-Identifier: Apache-2.0
//
// A character GPT that is trained with eight micro-batches per step.
#include "model.h"
#include <kiln/generator.h>

namespace {

constexpr kiln::Dim B{"windows", 1, 8};

struct Staged : CharGpt<4, 128, 4> {
  using Windows = kiln::Tensor<kiln::i32, B, 256>;
  constexpr auto loss(Windows tokens, Windows targets) const {
    auto x = wte(tokens) + wpe(kiln::positions(tokens));
    return kiln::cross_entropy(kiln::logits(ln_f(h(x)), wte), targets);
  }
  static constexpr auto entries() {
    return std::tuple{
        kiln::train("train", &Staged::loss, {"tokens", "targets"}, {"loss"}, kiln::AdamW{}).accumulated(8).clipped(1)};
  }
};

} // namespace

KILN_MODEL(char_gpt_stages, Staged)
