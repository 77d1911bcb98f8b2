// SPDX-License-Identifier: Apache-2.0
//
// A layer is called without a tensor.
// expect: kiln: layer: no tensor among its arguments; expected at least one [layer_c3]
#include "case.h"
using namespace kiln;
struct Odd : Layer<Odd> {
  using Layer::Layer;
  constexpr auto forward(int x) const { return x; }
};

struct M : Model {
  Odd odd{"odd"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x) + odd(3); }
};
static_assert(parameters<M>() >= 0);
