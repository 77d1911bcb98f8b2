// SPDX-License-Identifier: Apache-2.0
//
// Windows of an image with four leading dimensions have an intermediate result of rank 9.
// expect: forward: tensor: rank too large; expected at most 8, got [1, 1, 2, 3, 2, 2, 3, 2, 5] [tensor_c3] (tensor_c3_result.cpp:9)
#include "case.h"
using namespace kiln;
#include "kiln/windows.h"
struct M : Model {
  constexpr auto forward(Tensor<f32, 1, 1, 2, 3, 4, 6, 5> x) const { return to_windows<2>(x); }
};
static_assert(parameters<M>() >= 0);
