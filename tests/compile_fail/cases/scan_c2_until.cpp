// SPDX-License-Identifier: Apache-2.0
//
// The step of a scan that ends early changes the state's type.
// expect: forward: scan: step changes the state's type; expected f32[8], got boolean[8] [scan_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8> h, Tensor<f32, T, 8> x) const {
    return std::get<0>(scan_until(h, x, [](auto before, auto here) {
      return std::tuple{less(before, here), std::tuple<>(), reshape<>(less(sum<0>(before), 0))};
    }));
  }
};
static_assert(parameters<M>() >= 0);
