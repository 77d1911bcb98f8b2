// SPDX-License-Identifier: Apache-2.0
//
// A convolution in groups has no code that decodes its weight.
// expect: conv: a parameter that is stored in fewer bits requires linear, matmul, conv2d without groups or embedding to read it, as their weight [parameter_c7]: got weight in conv2d
#include "case.h"
using namespace kiln;

struct M : Model {
  Conv2d<8, 8, 3, Conv2dOptions{.groups = 2}, true, int8> conv{"conv"};
  constexpr auto forward(Tensor<f32, 9, 9, 8> x) const { return conv(x); }
};
static_assert(parameters<M>() >= 0);
