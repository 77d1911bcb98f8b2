// SPDX-License-Identifier: Apache-2.0
//
// A custom function is called with a tensor of another shape than before.
// expect: forward: custom: function has other types, workspace or derivative than before; expected one signature for a name, got biquad [custom_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, T, 4> y) const {
    return outputs(custom<"biquad", Tensor<f32, T, 8>>(x), custom<"biquad", Tensor<f32, T, 4>>(y));
  }
};
static_assert(parameters<M>() >= 0);
