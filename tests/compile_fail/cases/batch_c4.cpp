// SPDX-License-Identifier: Apache-2.0
//
// Inputs and results have different first dimensions.
// expect: batched entries: different first dimensions of inputs and results; expected source, got tokens 1..64 [batch_c4]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto both(Tensor<f32, S, 4> x, Tensor<f32, T, 4> y) const { return kiln::outputs(tanh(x), exp(y)); }
  static constexpr auto entries() { return std::tuple{entry("both", &M::both).batched(8)}; }
};
static_assert(parameters<M>() >= 0);
