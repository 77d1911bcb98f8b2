// SPDX-License-Identifier: Apache-2.0
//
// A layer without a name.
// expect: forward: a layer requires a name [layer_c2]: got an empty one
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{""};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
