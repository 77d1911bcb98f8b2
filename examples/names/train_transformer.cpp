// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the model of transformer.h.
#include "training.h"
#include "transformer.h"
#include <kiln/generator.h>

struct TransformerTraining : names::Transformer {
  static constexpr kiln::Dim B = names::B, T{"target_tokens", 1, names::target_tokens};

  constexpr auto loss(kiln::Tensor<kiln::i32, B, S> source, kiln::Tensor<kiln::i32, B, T + 1> target) const {
    constexpr kiln::AttentionOptions<> own;
    auto there = kiln::lengths(names::lengths_of(source));
    auto memory = encoder(embed(source, kiln::positions(source)), there);
    auto tokens = kiln::slice<1, 0, T>(target);
    auto x = decoder0(embed(tokens, kiln::positions(tokens)), memory, own, there);
    auto y = decoder1(x, memory, own, there);
    return names::loss_of(kiln::logits(y, embedding), kiln::slice<1, 1, T>(target));
  }
  static constexpr auto entries() { return names::training_entries<TransformerTraining>({"*bias*", "*norm*"}); }
};

KILN_MODEL(names_train, TransformerTraining)
