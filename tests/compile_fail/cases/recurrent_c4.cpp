// SPDX-License-Identifier: Apache-2.0
//
// The number of layers is 0.
// expect: kiln: recurrent layer: no layers; expected at least one [recurrent_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  Rnn<8, 4, RecurrentOptions{.layers = 0}> rnn{"rnn"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return rnn(x).outputs; }
};
static_assert(parameters<M>() >= 0);
