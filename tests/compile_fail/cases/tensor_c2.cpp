// SPDX-License-Identifier: Apache-2.0
//
// A function of a layer has a parameter with another width.
// expect: narrow: argument: wrong element type or shape; expected f32[tokens 1..64, 4], got f32[tokens 1..64, 8] [tensor_c2]
#include "case.h"
using namespace kiln;
struct Narrow : Layer<Narrow> {
  using Layer::Layer;
  constexpr auto forward(Tensor<f32, T, 4> x) const { return relu(x); }
};

struct M : Model {
  Narrow narrow{"narrow"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return narrow(x); }
};
static_assert(parameters<M>() >= 0);
