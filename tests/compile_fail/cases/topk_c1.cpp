// SPDX-License-Identifier: Apache-2.0
//
// More than a run-time axis may have.
// expect: forward: topk requires a count from 1 to the axis's extent [topk_c1]: got 2, expected tokens 1..64 (topk_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return topk<2>(x).first; }
};
static_assert(parameters<M>() >= 0);
