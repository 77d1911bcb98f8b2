// SPDX-License-Identifier: Apache-2.0
//
// A variable has a storage format of fewer bits than f32.
// expect: variables: another storage of a weight; expected f32, got int8 of head.weight [model_c16]
#include "case.h"
using namespace kiln;

struct M : Model {
  static constexpr Names variables{"head.*"};
  Linear<4, 4, true, WeightOrder::out_in, int8> head{"head"};
  constexpr auto forward(const Tensor<f32, 3, 4> &x) const { return head(x); }
};
static_assert(parameters<M>() >= 0);
