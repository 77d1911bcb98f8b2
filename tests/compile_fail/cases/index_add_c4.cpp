// SPDX-License-Identifier: Apache-2.0
//
// The rows have another type.
// expect: forward: index_add: wrong element types; expected one type of numbers, got f32[tokens 1..64, 8] and f16[3, 8] [index_add_c4] (index_add_c4.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<i32, 3> i, Tensor<f16, 3, 8> y) const { return index_add(x, i, y); }
};
static_assert(parameters<M>() >= 0);
