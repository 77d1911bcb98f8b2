// SPDX-License-Identifier: Apache-2.0
//
// Sequences have rows of two kinds.
// expect: the batched entries of a model require one named extent as the first of inputs and results [batch_c4]: got tokens 1..64, expected source
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto both(Tensor<f32, S, 4> x, Tensor<f32, T, 4> y) const { return kiln::outputs(tanh(x), exp(y)); }
  static constexpr auto entries() { return std::tuple{entry("both", &M::both).batched(8)}; }
};
static_assert(parameters<M>() >= 0);
