// SPDX-License-Identifier: Apache-2.0
//
// The stored value has another shape.
// expect: forward: store: wrong element type or shape; expected f32[64, 8], got f32[tokens 1..64, 8] [store_c1] (store_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    State<f32, 64, 8>("rows").store(x);
    return x;
  }
};
static_assert(parameters<M>() >= 0);
