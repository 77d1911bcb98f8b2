// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation in training entries: outside of a stack's layers and in them.
#pragma once

#include "ops.h"

namespace specs {

struct NormalizedBlock : kiln::Layer<NormalizedBlock> {
  using kiln::Layer<NormalizedBlock>::Layer;
  kiln::BatchNorm2d<4> norm{"norm", 0x1p-7, 0.25};

  constexpr auto forward(const kiln::tensor auto &x) const { return x + kiln::tanh(norm(x)); }
};

struct Normalized : kiln::Model {
  using X = kiln::Tensor<f32, rows, 3, 4>;
  kiln::Stack<2, NormalizedBlock> h{"h"};
  kiln::BatchNorm2d<4> last{"last"};

  constexpr auto loss(X x) const {
    auto y = h(x * kiln::parameter<f32, 4>(x, "scale"));
    return total(kiln::tanh(last(y)) * kiln::parameter<f32, 3, 4>(x, "of_places"));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("all", &Normalized::loss, {"x"}, {"loss"}),
                      kiln::gradients("recomputed", &Normalized::loss, {"x"}, {"loss"}).checkpointed(),
                      kiln::gradients("frozen", &Normalized::loss, {"x"}, {"loss"}).frozen({"last.*", "h.*.running_*"}),
                      kiln::gradients("twice", &Normalized::loss, {"x"}, {"loss"}).accumulated(2),
                      kiln::train("train", &Normalized::loss, {"x"}, {"loss"}, kiln::AdamW{}).clipped(0.5),
                      kiln::train("averaged", &Normalized::loss, {"x"}, {"loss"}, kiln::Sgd{}).averaged(0.9),
                      kiln::entry("kept", &Normalized::loss, {"x"}, {"loss"})};
  }
};

} // namespace specs
