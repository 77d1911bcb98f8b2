// SPDX-License-Identifier: Apache-2.0
//
// Training entries with dropout: outside of and inside loops, in a stack, and over time within a stack; and stopped
// gradients.
#pragma once

#include "ops.h"

namespace specs {

struct DroppedBlock : kiln::Layer<DroppedBlock> {
  using kiln::Layer<DroppedBlock>::Layer;
  kiln::Linear<4, 4> in{"in"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &sequence) const {
    auto weight = kiln::parameter<f32, 4, 4>(x, "weight");
    auto [last, all] = kiln::scan(in(x), sequence, [&](auto state, auto here) {
      auto next = kiln::dropout(kiln::linear(state, weight), 0.25) + here;
      return std::pair{next, next};
    });
    return x + kiln::dropout(kiln::tanh(last), 0.4);
  }
};

struct Dropped : kiln::Model {
  using X = kiln::Tensor<f32, rows, 4>;
  kiln::Stack<3, DroppedBlock> h{"h"};

  constexpr auto loss(X x) const {
    auto once = kiln::dropout(x, 0.5) * kiln::parameter<f32, 4>(x, "scale");
    return total(kiln::tanh(h(kiln::sum<0>(once), x))) + total(kiln::dropout(once, 0.5));
  }
  /// Dropout applied to ones.
  constexpr auto ones(kiln::Tensor<f32, 64, 64> x) const {
    auto y = kiln::dropout(x * kiln::parameter<f32>(x, "one"), 0.3);
    return kiln::outputs(total(y), y);
  }
  /// w + w^2 + w^2, where the gradient with respect to w is that of the factors outside of stop_gradient: 1 + w.
  constexpr auto stopped(X x) const {
    auto w = kiln::parameter<f32, 4>(x, "scale");
    return total(x * (w + kiln::stop_gradient(w) * w + kiln::stop_gradient(w * w)));
  }
  /// Truncated backpropagation: the state continues, but its gradient goes back three steps at most.
  constexpr auto truncated(X x) const {
    auto w = kiln::parameter<f32, 4, 4>(x, "w");
    auto steps = std::tuple{x, kiln::positions<0>(x)};
    auto [last, all] = kiln::scan(kiln::sum<0>(x) * 0, steps, [&](auto state, auto at) {
      auto [here, t] = at;
      auto cut = kiln::equal(kiln::remainder(t, 3), 0);
      auto next = kiln::tanh(kiln::linear(kiln::where(cut, kiln::stop_gradient(state), state), w) + here);
      return std::pair{next, next};
    });
    return total(all);
  }

  /// Truncated by calls: a state continues in the next call.
  constexpr auto carried(X x) const {
    kiln::State<f32, 4> hidden("hidden");
    auto w = kiln::parameter<f32, 4, 4>(x, "w");
    auto [last, all] = kiln::scan(hidden.read(x), x, [&](auto state, auto here) {
      auto next = kiln::tanh(kiln::linear(state, w) + here);
      return std::pair{next, next};
    });
    hidden.store(last);
    return total(all);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("dropped", &Dropped::loss, {"x"}, {"loss"}),
                      kiln::gradients("recomputed", &Dropped::loss, {"x"}, {"loss"}).checkpointed(),
                      kiln::gradients("rounded", &Dropped::loss, {"x"}, {"loss"}).activations(kiln::bf16),
                      kiln::entry("kept", &Dropped::loss, {"x"}, {"loss"}),
                      kiln::gradients("ones", &Dropped::ones, {"x"}, {"loss", "y"}),
                      kiln::gradients("twice", &Dropped::ones, {"x"}, {"loss", "y"}).accumulated(2),
                      kiln::gradients("stopped", &Dropped::stopped, {"x"}, {"loss"}),
                      kiln::gradients("truncated", &Dropped::truncated, {"x"}, {"loss"}),
                      kiln::gradients("carried", &Dropped::carried, {"x"}, {"loss"}),
                      kiln::train("train", &Dropped::loss, {"x"}, {"loss"}, kiln::Sgd{})};
  }
};

} // namespace specs
