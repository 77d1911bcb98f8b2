// SPDX-License-Identifier: Apache-2.0
//
// Two tensors of sinks.
// expect: kiln: attention: several tensors of sinks; expected at most one [attention_c20]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, 2> s) const {
    return attention<2>(q, q, q, sinks(s) | sinks(s));
  }
};
static_assert(parameters<M>() >= 0);
