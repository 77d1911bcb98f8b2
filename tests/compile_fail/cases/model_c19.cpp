// SPDX-License-Identifier: Apache-2.0
//
// The function entries is not static.
// expect: kiln: model: its entries cannot be called; expected a public function `static constexpr auto entries()` [model_c19]
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto forward(Tensor<f32, T, 8> x) const { return relu(x); }
  constexpr auto entries() const { return std::tuple{entry("run", &M::forward)}; }
};
static_assert(parameters<M>() >= 0);
