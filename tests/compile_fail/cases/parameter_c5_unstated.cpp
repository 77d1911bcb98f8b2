// SPDX-License-Identifier: Apache-2.0
//
// One use of a table has a storage format, another has none.
// expect: forward: parameter: another storage than before; expected int8, got none [parameter_c5] (parameter_c5_unstated.cpp:11)
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto forward(Tensor<i32, T> tokens) const {
    auto x = embedding(tokens, parameter<int8, 40, 8>(tokens, "table"));
    return linear(x, parameter<f32, 40, 8>(tokens, "table"));
  }
};
static_assert(parameters<M>() >= 0);
