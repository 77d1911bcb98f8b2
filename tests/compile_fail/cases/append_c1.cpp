// SPDX-License-Identifier: Apache-2.0
//
// The appended rows have another width than the state.
// expect: forward: append: wrong element type or shape of the rows; expected f32[tokens 1..64, 4], got f32[tokens 1..64, 8] [append_c1] (append_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return State<f32, 64, 4>("rows").append<T>(x); }
};
static_assert(parameters<M>() >= 0);
