// SPDX-License-Identifier: Apache-2.0
//
// Weights are averaged in an entry that does not train.
// expect: training: option does not fit the entry; expected clipped, averaged and without_decay for one that trains, frozen, checkpointed, activations and accumulated for one of gradients or one that trains, got loss [train_c6]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const { return mse(head(x), x); }
  static constexpr auto entries() { return std::tuple{entry("loss", &M::loss, {"x"}, {"loss"}).averaged(0.9)}; }
};
static_assert(parameters<M>() >= 0);
