// SPDX-License-Identifier: Apache-2.0
//
// A slice of a run-time extent that nothing states.
// expect: forward: a named extent requires an input or a state that has it [dim_c9]: got rows (dim_c9.cpp:9)
#include "case.h"
using namespace kiln;
constexpr Dim rows{"rows", 1, 8};
struct M : Model {
  constexpr auto forward(Tensor<f32, 8, 8> x) const { return slice<0, 0, rows>(x); }
};
static_assert(parameters<M>() >= 0);
