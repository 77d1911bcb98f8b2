// SPDX-License-Identifier: Apache-2.0
//
// The maximum number of sequences of a call is out of range.
// expect: batched entry: number of sequences out of range; expected 1 to 256, got 257 [batch_c1]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto step(Tensor<f32, 1, 4> x) const { return tanh(x); }
  static constexpr auto entries() { return std::tuple{entry("step", &M::step).batched(257)}; }
};
static_assert(parameters<M>() >= 0);
