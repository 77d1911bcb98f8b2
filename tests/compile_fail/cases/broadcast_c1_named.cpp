// SPDX-License-Identifier: Apache-2.0
//
// Two different dynamic dimensions do not broadcast.
// expect: forward: elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got f32[tokens 1..64, 8] and f32[source 1..128, 8] [broadcast_c1] (broadcast_c1_named.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, S, 8> y) const { return maximum(x, y); }
};
static_assert(parameters<M>() >= 0);
