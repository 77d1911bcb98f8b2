// SPDX-License-Identifier: Apache-2.0
//
// A layer has no name.
// expect: forward: layer: missing name; expected a non-empty one, got an empty one [layer_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{""};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
