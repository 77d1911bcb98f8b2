// SPDX-License-Identifier: Apache-2.0
//
// The workspace of a custom function depends on a dimension of none of its tensors.
// expect: forward: custom: invalid workspace; expected 0 bytes or more, over dimensions of the operands and results, got 4*source 4..512 [custom_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, S> y) const {
    return outputs(custom<"biquad", Tensor<f32, T, 8>>({.workspace = 4 * S}, x), y);
  }
};
static_assert(parameters<M>() >= 0);
