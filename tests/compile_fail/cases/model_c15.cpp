// SPDX-License-Identifier: Apache-2.0
//
// There are more patterns than a list of names holds.
// expect: variables: too many patterns; expected at most 16, got 17 [model_c15]
#include "case.h"
using namespace kiln;
struct M : Model {
  static constexpr Names variables{"*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*", "*"};
  Linear<4, 4> fc{"fc"};
  constexpr auto forward(const Tensor<f32, 3, 4> &x) const { return fc(x); }
};
static_assert(parameters<M>() >= 0);
