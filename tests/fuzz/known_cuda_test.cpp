// SPDX-License-Identifier: Apache-2.0
//
// Regression tests of models that the GPU target got wrong, refused or crashed at, as the smallest specs that reproduce
// it.
#include "known.h"

namespace kiln::fuzz {
namespace {

// Weights that a pass has concatenated are stored as one dense tile.
KNOWN(
    ProjectionsOfInputsFirst, (Tensor<f32, 3, 2> x) const {
      auto q = linear<WeightOrder::in_out>(x, parameter<f32, 2, 6>(x, "q"));
      auto k = linear<WeightOrder::in_out>(x, parameter<f32, 2, 3>(x, "k"));
      auto v = linear<WeightOrder::in_out>(x, parameter<f32, 2, 3>(x, "v"));
      return attention<2, 1>(q, k, v, scale(0.5));
    })

// Sums had another order when a caller's tensor was not aligned to 16 bytes.
KNOWN(ScoresOfFewRows, (Tensor<f32, 1, 1, 2, 32> x) const { return attention_scores<2, 2>(x, x, scale(0.125)); })

} // namespace
} // namespace kiln::fuzz
