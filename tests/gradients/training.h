// SPDX-License-Identifier: Apache-2.0
//
// Training steps with each optimiser: a small model with a stack, a tied table, and a scalar parameter.
#pragma once

#include "loops.h"

namespace specs {

struct TrainedModel : kiln::Model {
  using Tokens = kiln::Tensor<i32, rows>;
  kiln::Embedding<7, 4> words{"words"};
  kiln::Stack<2, GradientOuter> h{"h"};
  kiln::LayerNorm<4> norm{"norm"};

  constexpr auto logits_of(Tokens tokens) const {
    auto x = words(tokens);
    return kiln::logits(norm(h(x, x * kiln::parameter<f32>(x, "gain"))), words);
  }
  constexpr auto loss(Tokens tokens, Tokens targets) const {
    return kiln::cross_entropy<kiln::CrossEntropyOptions{.ignore = 6, .label_smoothing = 0.1}>(logits_of(tokens),
                                                                                               targets);
  }

  constexpr auto loss_and_logits(Tokens tokens, Tokens targets) const {
    return kiln::outputs(loss(tokens, targets), logits_of(tokens));
  }

  static constexpr auto entries() {
    constexpr auto train = [](const char *name, auto optimizer) {
      return kiln::train(name, &TrainedModel::loss, {"tokens", "targets"}, {"loss"}, optimizer);
    };
    return std::tuple{
        kiln::gradients("gradients", &TrainedModel::loss, {"tokens", "targets"}, {"loss"}),
        train("descend", kiln::Sgd{}),
        train("roll", kiln::Sgd{.momentum = 0.9, .weight_decay = 0.05}),
        train("adam", kiln::Adam{.beta2 = 0.99, .weight_decay = 0.02}),
        train("adamw", kiln::AdamW{.beta1 = 0.8, .weight_decay = 0.1}).without_decay({"*.bias", "*norm*"}),
        train("clipped", kiln::AdamW{}).clipped(0.25),
        train("averaged", kiln::Sgd{.momentum = 0.5}).averaged(0.9),
        kiln::train("accumulate", &TrainedModel::loss_and_logits, {"tokens", "targets"}, {"loss", "logits"},
                    kiln::Adam{})
            .accumulated(3),
        train("tune", kiln::Sgd{}).frozen({"words.*", "h.*.inner.*"}),
        kiln::entry("logits", &TrainedModel::logits_of, {"tokens"}, {"logits"})};
  }
};

/// Two of its entries.
struct ResumedModel : TrainedModel {
  static constexpr auto entries() {
    constexpr auto train = [](const char *name, auto optimizer) {
      return kiln::train(name, &ResumedModel::loss, {"tokens", "targets"}, {"loss"}, optimizer);
    };
    return std::tuple{train("adamw", kiln::AdamW{}), train("averaged", kiln::Sgd{.momentum = 0.5}).averaged(0.9)};
  }
};

} // namespace specs
