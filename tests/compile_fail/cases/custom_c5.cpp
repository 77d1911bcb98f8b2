// SPDX-License-Identifier: Apache-2.0
//
// A custom function is its own derivative.
// expect: forward: custom: invalid derivative; expected the name of another function, got biquad [custom_c5]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return custom<"biquad", Tensor<f32, T, 8>>({.derivative = "biquad"}, x);
  }
};
static_assert(parameters<M>() >= 0);
