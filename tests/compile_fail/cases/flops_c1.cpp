// SPDX-License-Identifier: Apache-2.0
//
// The value of a dimension exceeds its bound.
// expect: flops_value_missing_or_out_of_bounds_flops_c1
#include "case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 8> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
constexpr auto operations = flops<M>({{"tokens", 65}});
