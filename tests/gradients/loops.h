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

/// Carries two values; the gate is a number of the layer.
struct GradientPair : kiln::Layer<GradientPair> {
  using kiln::Layer<GradientPair>::Layer;
  kiln::Linear<4, 4> a{"a"}, b{"b"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &y, const kiln::tensor auto &gate) const {
    return std::tuple{kiln::tanh(a(x) * gate + y), y + b(x) * gate};
  }
};
/// A layer of a pattern: it returns an output in addition to what it carries.
template <int Width> struct GradientPart : kiln::Layer<GradientPart<Width>> {
  using kiln::Layer<GradientPart<Width>>::Layer;
  kiln::Linear<4, Width> up{"up"};
  kiln::Linear<Width, 4> down{"down"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &gate) const {
    auto next = x + down(kiln::tanh(up(x))) * gate;
    return std::pair{next, next * x};
  }
};

struct GradientLoops : kiln::Model {
  using X = kiln::Tensor<f32, rows, 4>;
  using Batch = kiln::Tensor<f32, rows, 2, 4>;
  kiln::Stack<3, GradientBlock> h{"h"}, tail{"tail"};
  kiln::Stack<2, GradientOuter> nest{"nest"};
  kiln::Stack<3, GradientPair> pairs{"pairs"};
  kiln::Stack<5, kiln::Pattern<1, GradientPart<3>, 1, GradientPart<5>>> parts{"parts"};
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
  constexpr auto two_values(X x) const {
    auto gates = kiln::tanh(kiln::parameter<f32, 3>(x, "pair_gates"));
    auto [u, v] = pairs(std::tuple{in(x), x}, kiln::per_layer(gates));
    return total(u * u) + total(v * in(x));
  }
  constexpr auto pattern(X x) const {
    auto gates = kiln::tanh(kiln::parameter<f32, 5>(x, "part_gates"));
    auto [last, all] = parts.with_outputs(in(x), kiln::per_layer(gates));
    return total(last * last) + total(kiln::tanh(all));
  }
  /// Ends at the second step, or at the end.
  constexpr auto until(X x) const {
    auto [last, all, count] = kiln::scan_until(kiln::parameter<f32, 4>(x, "until_h"),
                                               std::tuple{in(x), kiln::positions<0>(x)}, [&](auto h, auto here) {
                                                 auto next = kiln::tanh(out(h)) + std::get<0>(here);
                                                 return std::tuple{next, next * h, kiln::equal(std::get<1>(here), 1)};
                                               });
    return total(last * last) + total(all);
  }
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
                      kiln::gradients("two_values", &GradientLoops::two_values, {"x"}, {"loss"}),
                      kiln::gradients("pattern", &GradientLoops::pattern, {"x"}, {"loss"}),
                      kiln::gradients("until", &GradientLoops::until, {"x"}, {"loss"}),
                      kiln::gradients("over_time", &GradientLoops::over_time, {"x"}, {"loss"}),
                      kiln::gradients("lstms", &GradientLoops::lstms, {"x"}, {"loss"}),
                      kiln::gradients("grus", &GradientLoops::grus, {"x"}, {"loss"})};
  }
};

} // namespace specs
