// SPDX-License-Identifier: Apache-2.0
//
// The context may be longer than the state.
// expect: forward: state: rows of its value do not fit; expected 32, got tokens 1..64 [append_c3] (append_c3.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return State<f32, 32, 8>("rows").append<T>(x); }
};
static_assert(parameters<M>() >= 0);
