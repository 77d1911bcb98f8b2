// SPDX-License-Identifier: Apache-2.0
//
// A name that ends a string of the generated header.
// expect: forward: names of layers, parameters and states require printable ASCII without quotes, backslashes and braces [layer_c4]: got others
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{"the \"first\""};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
