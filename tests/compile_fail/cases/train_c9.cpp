// SPDX-License-Identifier: Apache-2.0
//
// The activations of training are f16, whose range is too small.
// expect: activations: unsupported type; expected f32 or bf16, got f16 [train_c9]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{}).activations(f16)};
  }
};
static_assert(parameters<M>() >= 0);
