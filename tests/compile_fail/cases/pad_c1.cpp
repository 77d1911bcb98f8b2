// SPDX-License-Identifier: Apache-2.0
//
// A number of padded elements is negative.
// expect: forward: pad: axis out of range, or negative number; expected an axis within the rank and numbers of at least 0, got -1 and 0 of f32[tokens 1..64] [pad_c1] (pad_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return pad<0, -1, 0>(x); }
};
static_assert(parameters<M>() >= 0);
