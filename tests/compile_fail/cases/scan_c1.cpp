// SPDX-License-Identifier: Apache-2.0
//
// The sequences have different lengths.
// expect: forward: scan: sequences differ in the first dimension; got f32[tokens 1..64, 8] and f32[source 1..128, 8] [scan_c1] (scan_c1.cpp:9)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x, Tensor<f32, S, 8> y) const {
    return scan(zeros<f32, 8>(x), std::tuple{x, y}, [](auto h, auto) { return std::pair{h, h}; }).first;
  }
};
static_assert(parameters<M>() >= 0);
