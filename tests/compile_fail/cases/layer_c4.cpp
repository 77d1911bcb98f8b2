// SPDX-License-Identifier: Apache-2.0
//
// A name has a character that would end a string of the generated header.
// expect: forward: layer, parameter or state: invalid character in the name; expected printable ASCII without quotes, backslashes and braces, got others [layer_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{"the \"first\""};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
