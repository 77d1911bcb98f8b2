// SPDX-License-Identifier: Apache-2.0
//
// The group size is not supported.
// expect: kiln: int4: unsupported size of the groups; expected 32, 64 or 128 [storage_c2]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<48, 16, true, WeightOrder::out_in, int4<48>> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 48> x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
