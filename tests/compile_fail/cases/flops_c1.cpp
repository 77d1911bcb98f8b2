// SPDX-License-Identifier: Apache-2.0
//
// An extent beyond its bound.
// expect: flops_requires_a_value_within_bounds_for_every_named_extent_flops_c1
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
constexpr auto operations = flops<M>({{"tokens", 65}});
