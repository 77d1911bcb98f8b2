// SPDX-License-Identifier: Apache-2.0
//
// The rows of this result cannot be concatenated with those of other sequences.
// expect: batched entry: wrong first dimension of an input or result; expected a static or a named one, got 2*tokens 2..128 [batch_c3]
#include "case.h"
using namespace kiln;

struct M : Model {
  constexpr auto twice(Tensor<f32, T, 4> x) const { return concat<0>(x, x); }
  static constexpr auto entries() { return std::tuple{entry("twice", &M::twice).batched(8)}; }
};
static_assert(parameters<M>() >= 0);
