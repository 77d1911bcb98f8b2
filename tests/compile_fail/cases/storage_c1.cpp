// SPDX-License-Identifier: Apache-2.0
//
// The storage format is an integer type without a scale.
// expect: kiln: stored: unsupported element type; expected f32, f16 or bf16, or kiln::int8 or kiln::int4 instead for integers [storage_c1]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 16, true, WeightOrder::out_in, stored<i8>> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
