// SPDX-License-Identifier: Apache-2.0
//
// Read, and appended to.
// expect: forward: a state requires to be appended to at most once in an entry, and not to be read or replaced then [state_c2]: got rows (state_c2.cpp:11)
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
