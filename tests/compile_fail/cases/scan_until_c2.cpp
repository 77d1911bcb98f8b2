// SPDX-License-Identifier: Apache-2.0
//
// The end has a value for each element.
// expect: forward: scan_until: wrong type of the end; expected a boolean scalar, got boolean[8] [scan_until_c2]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, 8> h, Tensor<f32, T, 8> x) const {
    return std::get<0>(scan_until(h, x, [](auto before, auto here) {
      return std::tuple{before + here, std::tuple<>(), less(before, here)};
    }));
  }
};
static_assert(parameters<M>() >= 0);
