// SPDX-License-Identifier: Apache-2.0
//
// What the target for GPUs once got wrong, refused or crashed at, as the smallest specs that showed it.
#include "known.h"

namespace kiln::fuzz {
namespace {

// Weights that a pass has put side by side are stored as one tile, which is dense.
KNOWN(
    ProjectionsOfInputsFirst, (Tensor<f32, 3, 2> x) const {
      auto q = linear<WeightOrder::in_out>(x, parameter<f32, 2, 6>(x, "q"));
      auto k = linear<WeightOrder::in_out>(x, parameter<f32, 2, 3>(x, "k"));
      auto v = linear<WeightOrder::in_out>(x, parameter<f32, 2, 3>(x, "v"));
      return attention<2, 1>(q, k, v, scale(0.5));
    })

// Sums had another order where a caller's tensor was not aligned to 16 bytes.
KNOWN(ScoresOfFewRows, (Tensor<f32, 1, 1, 2, 32> x) const { return attention_scores<2, 2>(x, x, scale(0.125)); })

} // namespace
} // namespace kiln::fuzz
