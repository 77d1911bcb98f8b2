// SPDX-License-Identifier: Apache-2.0
//
// The input is one step, not a sequence.
// expect: rnn: recurrent layer: wrong shape of the sequence; expected [steps, ..., width], got f32[8] [recurrent_c1] (recurrent_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Rnn<8, 4> rnn{"rnn"};
  constexpr auto forward(Tensor<f32, 8> x) const { return rnn(x).outputs; }
};
static_assert(parameters<M>() >= 0);
