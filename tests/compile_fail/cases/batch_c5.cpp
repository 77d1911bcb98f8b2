// SPDX-License-Identifier: Apache-2.0
//
// A dimension has the reserved name of the number of rows of all sequences.
// expect: batched entry: reserved name of a dimension; expected another than rows and sequences, got rows [batch_c5]
#include "case.h"
using namespace kiln;

constexpr Dim R{"rows", 1, 9};
struct M : Model {
  constexpr auto step(Tensor<f32, R, 4> x) const { return tanh(x); }
  static constexpr auto entries() { return std::tuple{entry("step", &M::step).batched(8)}; }
};
static_assert(parameters<M>() >= 0);
