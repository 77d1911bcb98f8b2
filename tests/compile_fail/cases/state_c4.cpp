// SPDX-License-Identifier: Apache-2.0
//
// The state has no dimensions.
// expect: kiln: state: no dimensions; expected at least one [state_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return x + State<f32>("s").read(x); }
};
static_assert(parameters<M>() >= 0);
