// SPDX-License-Identifier: Apache-2.0
//
// The operands differ in other dimensions than the axis.
// expect: forward: concat: different dimensions on other axes; expected equal ones, got f32[tokens 1..64, 8] and f32[source 1..128, 8] [concat_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, S, 8> y) const { return concat<-1>(x, y); }
};
static_assert(parameters<M>() >= 0);
