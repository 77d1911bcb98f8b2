// SPDX-License-Identifier: Apache-2.0
//
// There is a length for each step.
// expect: rnn: recurrent layer: lengths are not i32, one a sequence; expected [batch 1..8], got i32[tokens 1..64, batch 1..8] [recurrent_c3] (recurrent_c3.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Lstm<8, 4> rnn{"rnn"};
  constexpr auto forward(Tensor<f32, T, B, 8> x, Tensor<i32, T, B> n) const { return rnn(x, None(), n).outputs; }
};
static_assert(parameters<M>() >= 0);
