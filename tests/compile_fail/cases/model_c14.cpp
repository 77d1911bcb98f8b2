// SPDX-License-Identifier: Apache-2.0
//
// A pattern of variables matches no weight.
// expect: variables: pattern matches no parameter; expected a parameter for each pattern, got head.*; nearest: fc.weight [model_c14]
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names variables{"fc.*", "head.*"};
  Linear<4, 4> fc{"fc"};
  constexpr auto forward(const Tensor<f32, 3, 4> &x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
