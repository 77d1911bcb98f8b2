// SPDX-License-Identifier: Apache-2.0
//
// The sequence is f16, the weights are f32.
// expect: rnn: recurrent layer: wrong element type of the sequence; expected that of its weights, got f16[tokens 1..64, 8] [recurrent_c7] (recurrent_c7.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Lstm<8, 4> rnn{"rnn"};
  constexpr auto forward(Tensor<f16, T, 8> x) const { return rnn(x).outputs; }
};
static_assert(parameters<M>() >= 0);
