// SPDX-License-Identifier: Apache-2.0
//
// There are too many recurrent layers.
// expect: kiln: recurrent layer: too many layers; expected at most 64 [recurrent_c6]
#include "case.h"
using namespace kiln;
struct M : Model {
  Rnn<8, 8, RecurrentOptions{.layers = 100}> rnn{"rnn"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return rnn(x).outputs; }
};
static_assert(parameters<M>() >= 0);
