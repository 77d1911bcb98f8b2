// SPDX-License-Identifier: Apache-2.0
//
// The output padding equals the stride.
// expect: forward: conv_transpose2d: padding too large; expected a padding below the dilated kernel and an output padding below the stride, got f32[4, 4, 6] and f32[6, 8, 3, 3] [conv_transpose2d_c2] (conv_transpose2d_c2.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 4, 6> x, Tensor<f32, 6, 8, 3, 3> w) const {
    return conv_transpose2d<ConvTranspose2dOptions{.output_padding = 1}>(x, w);
  }
};
static_assert(parameters<M>() >= 0);
