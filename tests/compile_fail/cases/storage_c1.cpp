// SPDX-License-Identifier: Apache-2.0
//
// Numbers of f32 stored as whole ones without a scale.
// expect: kiln: stored requires f32, f16 or bf16; in whole numbers a weight is stored as kiln::int8 [storage_c1]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 16, true, WeightOrder::out_in, stored<i8>> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
