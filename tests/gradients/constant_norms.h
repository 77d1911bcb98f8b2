// SPDX-License-Identifier: Apache-2.0
//
// Norms of one image, in training entries.
#pragma once

#include "ops.h"

namespace specs {

struct ConstantNorms : kiln::Model {
  using X = kiln::Tensor<f32, rows, 3, 6>;
  kiln::LayerNorm<6> layer{"layer"};
  kiln::BatchNorm2d<6> batch{"batch"};
  kiln::GroupNorm<2, 6> group{"group"};
  kiln::InstanceNorm2d<6> instance{"instance"};

  constexpr auto loss(X x) const {
    auto of_places = kiln::parameter<f32, 3, 6>(x, "of_places");
    return total((layer(x) + batch(x) + group(x) + instance(x)) * of_places);
  }
  static constexpr auto entries() { return std::tuple{kiln::gradients("all", &ConstantNorms::loss, {"x"}, {"loss"})}; }
};

} // namespace specs
