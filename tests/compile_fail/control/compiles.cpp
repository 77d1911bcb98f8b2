// SPDX-License-Identifier: Apache-2.0
//
// A correct model: check.sh must not pass it.
// expect: linear: wrong input width
#include "../cases/case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 4> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 8> x) const { return fc(x); }
};
static_assert(parameters<M>() == 36);
