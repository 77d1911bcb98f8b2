// SPDX-License-Identifier: Apache-2.0
//
// The body has no outputs.
// expect: kiln: scan: wrong result of the step; expected a std::pair of the next state and the outputs, tensors or tuples of them [scan_c4]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return scan(zeros<f32, 8>(x), x, [](auto h, auto y) { return h + y; }).first;
  }
};
static_assert(parameters<M>() >= 0);
