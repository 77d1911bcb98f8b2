// SPDX-License-Identifier: Apache-2.0
//
// The indices are numbers.
// expect: forward: one_hot: wrong type of the indices; expected i32, got f32[tokens 1..64] [one_hot_c1] (one_hot_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return one_hot<5>(x); }
};
static_assert(parameters<M>() >= 0);
