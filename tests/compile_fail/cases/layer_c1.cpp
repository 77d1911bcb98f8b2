// SPDX-License-Identifier: Apache-2.0
//
// Two layers have one name.
// expect: forward: layer: name is used twice; expected different names in one owner, got fc [layer_c1] (layer_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> a{"fc"}, b{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return b(a(x)); }
};
static_assert(parameters<M>() >= 0);
