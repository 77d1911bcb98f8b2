// SPDX-License-Identifier: Apache-2.0
//
// The count may exceed the dynamic dimension.
// expect: forward: topk: count is not from 1 to the axis's dimension; expected tokens 1..64, got 2 [topk_c1] (topk_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return topk<2>(x).first; }
};
static_assert(parameters<M>() >= 0);
