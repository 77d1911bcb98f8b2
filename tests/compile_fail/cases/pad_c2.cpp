// SPDX-License-Identifier: Apache-2.0
//
// The axis may have only one element, next to which there is none.
// expect: forward: pad: more elements than the axis provides; expected at most 0, got 1 of tokens 1..64 [pad_c2] (pad_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return pad<0, 1, 0, PadMode::reflect>(x); }
};
static_assert(parameters<M>() >= 0);
