// SPDX-License-Identifier: Apache-2.0
//
// A custom function has no result.
// expect: kiln: custom: no result; expected a tensor type or several [custom_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    custom<"biquad">(x);
    return x;
  }
};
static_assert(parameters<M>() >= 0);
