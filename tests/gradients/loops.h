// SPDX-License-Identifier: Apache-2.0
//
// Gradients through stacks, whose parameters have a copy for each layer, and through loops over time.
#pragma once

#include "ops.h"

namespace specs {

struct GradientBlock : kiln::Layer<GradientBlock> {
  using kiln::Layer<GradientBlock>::Layer;
  kiln::LayerNorm<4> norm{"norm"};
  kiln::Linear<4, 6> up{"up"};
  kiln::Linear<6, 4> down{"down"};

  constexpr auto forward(const kiln::tensor auto &x) const { return x + down(kiln::gelu(up(norm(x)))); }
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &memory) const {
    auto y = forward(x);
    return y + kiln::attention<2>(y, memory, memory);
  }
};

struct GradientOuter : kiln::Layer<GradientOuter> {
  using kiln::Layer<GradientOuter>::Layer;
  kiln::Stack<2, GradientBlock> inner{"inner"};
  kiln::Linear<4, 4> out{"out"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &other) const {
    return kiln::tanh(out(inner(x * other, other)));
  }
};

struct GradientLoops : kiln::Model {
  using X = kiln::Tensor<f32, rows, 4>;
  using Batch = kiln::Tensor<f32, rows, 2, 4>;
  kiln::Stack<3, GradientBlock> h{"h"}, tail{"tail"};
  kiln::Stack<2, GradientOuter> nest{"nest"};
  kiln::Linear<4, 4> in{"in"}, out{"out"};
  kiln::Lstm<4, 3> lstm{"lstm"};
  kiln::Gru<4, 3, kiln::RecurrentOptions{.layers = 2, .bidirectional = true}> gru{"gru"};

  constexpr auto stack(X x) const { return total(out(h(in(x)))); }
  constexpr auto captured(X x) const { return total(kiln::tanh(h(x * 2, in(x)))); }
  constexpr auto states_of_layers(X x) const {
    auto [last, all] = h.hidden_states(in(x));
    return total(kiln::tanh(all)) + total(last * in(x));
  }
  constexpr auto two(X x) const { return total(kiln::tanh(tail(h(in(x)))) * in(x)); }
  constexpr auto nested(X x) const { return total(nest(in(x), x)); }
  constexpr auto over_time(X x) const {
    auto a = in(x);
    auto w = kiln::parameter<f32, 4, 4>(x, "time_w");
    auto b = kiln::parameter<f32, 4>(x, "time_b");
    auto [last, all] = kiln::scan(kiln::tanh(b), a, [&](auto state, auto here) {
      auto next = kiln::tanh(here + kiln::linear(state, w, b) * state);
      return std::pair{next, next * here};
    });
    return total(last * last) + total(all * a);
  }
  constexpr auto lstms(Batch x) const {
    auto [outputs, last] = lstm(x);
    return total(outputs * outputs) + total(std::get<1>(last));
  }
  constexpr auto grus(Batch x) const {
    auto [outputs, last] = gru(x);
    return total(outputs * outputs) + total(last);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::gradients("stack", &GradientLoops::stack, {"x"}, {"loss"}),
                      kiln::gradients("captured", &GradientLoops::captured, {"x"}, {"loss"}),
                      kiln::gradients("states_of_layers", &GradientLoops::states_of_layers, {"x"}, {"loss"}),
                      kiln::gradients("two", &GradientLoops::two, {"x"}, {"loss"}),
                      kiln::gradients("nested", &GradientLoops::nested, {"x"}, {"loss"}),
                      kiln::gradients("over_time", &GradientLoops::over_time, {"x"}, {"loss"}),
                      kiln::gradients("lstms", &GradientLoops::lstms, {"x"}, {"loss"}),
                      kiln::gradients("grus", &GradientLoops::grus, {"x"}, {"loss"})};
  }
};

} // namespace specs
