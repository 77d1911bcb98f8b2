// SPDX-License-Identifier: Apache-2.0
//
// An LSTM has one of its two states.
// expect: cell: recurrent step: wrong shape of the state; expected the input's leading dimensions and the hidden width, two of them for an LSTM, got f32[batch 1..8, 4] [recurrent_c5] (recurrent_c5.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  LstmStep<8, 4> cell{"cell"};
  constexpr auto forward(Tensor<f32, B, 8> x, Tensor<f32, B, 4> h) const { return cell(x, h); }
};
static_assert(parameters<M>() >= 0);
