// SPDX-License-Identifier: Apache-2.0
//
// A layer with two directions has the initial state of one.
// expect: rnn: recurrent layer: wrong shape of the initial states; expected [layers * directions, ..., hidden width], got f32[1, batch 1..8, 4] [recurrent_c2] (recurrent_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Gru<8, 4, RecurrentOptions{.bidirectional = true}> rnn{"rnn"};
  constexpr auto forward(Tensor<f32, T, B, 8> x, Tensor<f32, 1, B, 4> h) const { return rnn(x, h).outputs; }
};
static_assert(parameters<M>() >= 0);
