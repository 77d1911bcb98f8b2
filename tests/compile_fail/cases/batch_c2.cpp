// SPDX-License-Identifier: Apache-2.0
//
// Two entries of one model have different maximum numbers of sequences.
// expect: batched entries: different numbers of sequences; expected 32, got 8 [batch_c2]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto step(Tensor<f32, 1, 4> x) const { return tanh(x); }
  constexpr auto other(Tensor<f32, 1, 4> x) const { return exp(x); }
  static constexpr auto entries() {
    return std::tuple{entry("step", &M::step).batched(32), entry("other", &M::other).batched(8)};
  }
};
static_assert(parameters<M>() >= 0);
