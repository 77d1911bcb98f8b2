// SPDX-License-Identifier: Apache-2.0
//
// An entry with states has micro-batches.
// expect: accumulated: unsupported entry or number of micro-batches; expected 1 or more, and an entry without states whose inputs and results have five axes at most, got train [train_c7]
#include "case.h"
using namespace kiln;

struct M : Model {
  Linear<8, 8> head{"head"};
  constexpr auto loss(Tensor<f32, T, 8> x) const {
    State<f32, 8> mean("mean");
    auto y = head(x) + mean.read(x);
    mean.store(kiln::mean<0>(y));
    return mse(y, x);
  }
  static constexpr auto entries() {
    return std::tuple{train("train", &M::loss, {"x"}, {"loss"}, Sgd{}).accumulated(4)};
  }
};
static_assert(parameters<M>() >= 0);
