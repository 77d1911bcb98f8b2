// SPDX-License-Identifier: Apache-2.0
//
// A dynamic dimension does not convert to a fixed one.
// expect: fixed: argument: wrong element type or shape; expected f32[64, 8], got f32[tokens 1..64, 8] [tensor_c2]
#include "case.h"
using namespace kiln;
struct Fixed : Layer<Fixed> {
  using Layer::Layer;
  constexpr auto forward(Tensor<f32, 64, 8> x) const { return relu(x); }
};

struct M : Model {
  Fixed fixed{"fixed"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fixed(x); }
};
static_assert(parameters<M>() >= 0);
