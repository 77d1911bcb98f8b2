// SPDX-License-Identifier: Apache-2.0
//
// A scan has no sequences, so its trip count is unknown.
// expect: kiln: scan: no sequence, or a state that is no tensor; expected tensors as its state and at least one sequence [scan_c3]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return scan(x, std::tuple<>(), [](auto h, auto) { return std::pair{h, h}; }).first;
  }
};
static_assert(parameters<M>() >= 0);
