// SPDX-License-Identifier: Apache-2.0
//
// The step returns a pair, as that of a scan.
// expect: kiln: scan_until: wrong result of the step; expected a std::tuple of the next state, of the outputs and of a boolean tensor [scan_until_c1]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8> h, Tensor<f32, T, 8> x) const {
    return std::get<0>(scan_until(h, x, [](auto before, auto here) { return std::pair{before + here, before}; }));
  }
};
static_assert(parameters<M>() >= 0);
