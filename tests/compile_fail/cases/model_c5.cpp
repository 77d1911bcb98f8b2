// SPDX-License-Identifier: Apache-2.0
//
// Two entries have one name.
// expect: forward: entry: name is used twice; expected different names in one model, got run [model_c5] (model_c5.cpp:8)
#include "case.h"
using namespace kiln;
struct M : Model {
  constexpr auto a(Tensor<f32, T> x) const { return relu(x); }
  static constexpr auto entries() { return std::tuple{entry("run", &M::a), entry("run", &M::a)}; }
};
static_assert(parameters<M>() >= 0);
