// SPDX-License-Identifier: Apache-2.0
//
// The axis has more than one element.
// expect: forward: squeeze: axis out of range, or of more than one element; expected one of dimension 1, got axis 1 of f32[tokens 1..64, 8] [squeeze_c1] (squeeze_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return squeeze<1>(x); }
};
static_assert(parameters<M>() >= 0);
