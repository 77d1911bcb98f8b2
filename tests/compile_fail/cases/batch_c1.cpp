// SPDX-License-Identifier: Apache-2.0
//
// How many sequences a call takes, at most, is out of bounds.
// expect: batched entry: number of sequences out of range; expected 1 to 256, got 257 [batch_c1]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto step(Tensor<f32, 1, 4> x) const { return tanh(x); }
  static constexpr auto entries() { return std::tuple{entry("step", &M::step).batched(257)}; }
};
static_assert(parameters<M>() >= 0);
