// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters (Hu et al. 2021) next to frozen weights, which may be quantised.
#pragma once

#include "ops.h"

namespace specs {

template <kiln::WeightType Stored> struct AdaptedBlock : kiln::Layer<AdaptedBlock<Stored>> {
  using kiln::Layer<AdaptedBlock>::Layer;
  kiln::Linear<64, 64, true, kiln::WeightOrder::out_in, Stored> base{"base"};
  kiln::Linear<64, 4, false> down{"lora_a"};
  kiln::Linear<4, 64, false> up{"lora_b"};

  constexpr auto forward(const kiln::tensor auto &x) const { return kiln::tanh(base(x) + up(down(x))); }
};

template <kiln::WeightType Stored> struct Adapted : kiln::Model {
  using X = kiln::Tensor<f32, rows, 64>;
  kiln::Stack<2, AdaptedBlock<Stored>> h{"h"};

  constexpr auto loss(X x) const { return kiln::mse(h(x), x); }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("gradients", &Adapted::loss, {"x"}, {"loss"}).frozen({"*.base.*"}),
                      kiln::train("train", &Adapted::loss, {"x"}, {"loss"}, kiln::AdamW{}).frozen({"*.base.*"})};
  }
};

} // namespace specs
