// SPDX-License-Identifier: Apache-2.0
//
// The training entries of the model of char_lstm.h: a step on a piece of text from each of 48 streams, which continue
// from the previous step (truncated back-propagation through time), and the loss by itself. `keep` is 0 where the
// streams begin.
#include "char_lstm.h"
#include <kiln/generator.h>

struct CharLstmTraining : char_lstm::Trained {
  static constexpr kiln::Dim streams = 48, piece = 96, steps{"steps", 1, 96};

  template <kiln::Dim Steps> using Piece = kiln::Tensor<kiln::i32, Steps, streams>;
  template <kiln::Dim Steps>
  constexpr auto loss(Piece<Steps> tokens, Piece<Steps> targets, kiln::Tensor<kiln::f32> keep) const {
    return kiln::cross_entropy(read<streams>(tokens, keep), targets);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &CharLstmTraining::loss<piece>, {"tokens", "targets", "keep"}, {"loss"},
                                  kiln::AdamW{.beta2 = 0.98, .weight_decay = 0.01})
                          .clipped(1)
                          .without_decay({"*bias*"}),
                      kiln::entry("evaluate", &CharLstmTraining::loss<steps>, {"tokens", "targets", "keep"}, {"loss"})};
  }
};

KILN_MODEL(char_lstm_train, CharLstmTraining)
