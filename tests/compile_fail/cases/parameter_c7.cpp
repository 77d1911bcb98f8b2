// SPDX-License-Identifier: Apache-2.0
//
// The weight of a convolution in groups has a storage format of fewer bits.
// expect: conv: parameter stored in fewer bits: unsupported use; expected the weight of linear, grouped_linear, matmul, conv2d without groups or embedding, got weight in conv2d [parameter_c7]
#include "case.h"
using namespace kiln;

struct M : Model {
  Conv2d<8, 8, 3, Conv2dOptions{.groups = 2}, true, int8> conv{"conv"};
  constexpr auto forward(Tensor<f32, 9, 9, 8> x) const { return conv(x); }
};
static_assert(parameters<M>() >= 0);
