// SPDX-License-Identifier: Apache-2.0
//
// The body makes the state wider.
// expect: forward: scan: step changes the state's type; expected f32[8], got f32[16] [scan_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return scan(zeros<f32, 8>(x), x, [](auto h, auto y) { return std::pair{concat<0>(h, y), y}; }).first;
  }
};
static_assert(parameters<M>() >= 0);
