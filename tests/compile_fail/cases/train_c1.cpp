// SPDX-License-Identifier: Apache-2.0
//
// A trained weight has a storage format of fewer bits.
// expect: training: unsupported parameter; expected f32 that is stored as it is, or a frozen parameter, got head.weight [train_c1]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8, true, WeightOrder::out_in, int8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() { return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{})}; }
};
static_assert(parameters<M>() >= 0);
