// SPDX-License-Identifier: Apache-2.0
//
// The context may be shorter than the appended rows.
// expect: forward: append: result has fewer rows than are appended; expected tokens 1..64, got source 1..128 [append_c2] (append_c2.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return State<f32, 128, 8>("rows").append<S>(x); }
};
static_assert(parameters<M>() >= 0);
