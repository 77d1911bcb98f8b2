// SPDX-License-Identifier: Apache-2.0
//
// A step without outputs.
// expect: kiln: scan requires a step that returns a std::pair of the next state and the outputs
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return scan(zeros<f32, 8>(x), x, [](auto h, auto y) { return h + y; }).first;
  }
};
static_assert(parameters<M>() >= 0);
