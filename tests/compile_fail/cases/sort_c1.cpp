// SPDX-License-Identifier: Apache-2.0
//
// The axis is beyond the rank.
// expect: forward: sort: axis out of range; expected one within the rank, got axis 1 of f32[tokens 1..64] [sort_c1] (sort_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return sort<1>(x).first; }
};
static_assert(parameters<M>() >= 0);
