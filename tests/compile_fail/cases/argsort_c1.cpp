// SPDX-License-Identifier: Apache-2.0
//
// The count may exceed the dynamic dimension.
// expect: forward: argsort: count is not from 1 to the axis's dimension; expected tokens 1..64, got 2 [argsort_c1] (argsort_c1.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T> x) const { return argsort<-1, SortOrder::descending, 2>(x); }
};
static_assert(parameters<M>() >= 0);
