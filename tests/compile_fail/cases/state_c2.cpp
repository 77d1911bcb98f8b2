// SPDX-License-Identifier: Apache-2.0
//
// A state is appended to, then read.
// expect: forward: state: appended to and used again; expected at most one append in an entry, and no read or replacement then, got rows [state_c2] (state_c2.cpp:11)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    State<f32, 64, 8> rows("rows");
    auto before = rows.read(x);
    return sum<0>(rows.append<T>(x)) + sum<0>(before);
  }
};
static_assert(parameters<M>() >= 0);
