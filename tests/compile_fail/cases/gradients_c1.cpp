// SPDX-License-Identifier: Apache-2.0
//
// The loss is a vector.
// expect: gradients: first result is no loss; expected f32 without axes, got f32[tokens 1..64] [gradients_c1] (gradients_c1.cpp:10)
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 1> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return sum<-1>(head(x)); }
  static constexpr auto entries() { return std::tuple{gradients("loss", &M::loss)}; }
};
static_assert(parameters<M>() >= 0);
