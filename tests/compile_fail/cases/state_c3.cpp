// SPDX-License-Identifier: Apache-2.0
//
// A state is replaced twice.
// expect: forward: state: replaced twice; expected at most once in an entry, got rows [state_c3] (state_c3.cpp:11)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 4, 8> x) const {
    State<f32, 4, 8> rows("rows");
    rows.store(x);
    rows.store(x * 2);
    return x;
  }
};
static_assert(parameters<M>() >= 0);
