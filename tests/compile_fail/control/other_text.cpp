// SPDX-License-Identifier: Apache-2.0
//
// An incorrect model that another rule rejects: check.sh must not pass it.
// expect: softmax: axis out of range; expected one within the rank
#include "../cases/case.h"
using namespace kiln;
struct M : Model {
  Linear<8, 4> fc{"fc"};
  constexpr auto forward(Tensor<f32, T, 6> x) const { return fc(x); }
};
static_assert(parameters<M>() == 36);
