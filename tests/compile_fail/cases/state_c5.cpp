// SPDX-License-Identifier: Apache-2.0
//
// Two states with one name have different shapes.
// expect: forward: state: another element type or shape than before; expected [8], got [4] [state_c5] (state_c5.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const {
    return x + State<f32, 8>("s").read(x) + sum(State<f32, 4>("s").read(x));
  }
};
static_assert(parameters<M>() >= 0);
