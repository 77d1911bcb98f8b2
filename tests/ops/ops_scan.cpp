// SPDX-License-Identifier: Apache-2.0
// Loops over time: carried, sliced and stacked values, in every combination that the memory planner distinguishes.
#include "dims.h"

struct Decay {
  constexpr auto forward(const kiln::tensor auto &x) const {
    return kiln::scan(kiln::zeros<kiln::f32, B, 9>(x), x,
                      [](auto h, auto here) {
                        auto next = h * 0.5 + here;
                        return std::pair{next, next};
                      })
        .second;
  }
};
struct Doubled {
  constexpr auto forward(const kiln::tensor auto &x) const { return x + x; }
};

/// Carries two values; the gate is a number for each layer.
struct Crossed : kiln::Layer<Crossed> {
  using Layer::Layer;
  kiln::Linear<9, 9> fc{"fc"};
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &y, const kiln::tensor auto &gate) const {
    return std::tuple{kiln::tanh(fc(x)) + y, y * gate};
  }
};
/// The layers of a pattern. Each returns as output what it was given.
struct Turned : kiln::Layer<Turned> {
  using Layer::Layer;
  kiln::Linear<9, 9> fc{"fc"};
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &gate) const {
    return std::pair{kiln::tanh(fc(x)) * gate, x};
  }
};
struct Moved : kiln::Layer<Moved> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &gate) const {
    return std::pair{x + kiln::parameter<kiln::f32, 9>(x, "shift") * gate, x};
  }
};

struct Scan : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, B, 9>;
  using H = kiln::Tensor<kiln::f32, B, 9>;
  kiln::Linear<9, 7> input{"input"};
  kiln::Linear<7, 7> hidden{"hidden"};
  kiln::Embedding<29, 11> table{"table"};
  kiln::Stack<3, Decay> decays{"decays"};
  kiln::Stack<2, Doubled> doubled{"doubled"};
  kiln::Stack<3, Crossed> crossed{"crossed"};
  kiln::Stack<8, kiln::Pattern<2, Turned, 1, Moved>> layers{"layers"};

  /// tanh(U x + V h), with the projections before the loop and inside it.
  constexpr auto elman(X x, kiln::Tensor<kiln::f32, B, 7> initial) const {
    auto [last, all] = kiln::scan(initial, input(x), [&](auto h, auto here) {
      auto next = kiln::tanh(here + hidden(h));
      return std::pair{next, next};
    });
    auto [same, none] = kiln::scan(
        initial, x, [&](auto h, auto here) { return std::pair{kiln::tanh(input(here) + hidden(h)), std::tuple<>()}; });
    return kiln::outputs(last, all, same);
  }
  constexpr auto reverse(X x, H initial) const {
    auto [last, all] = kiln::scan<kiln::Direction::reverse>(initial, x, [](auto h, auto here) {
      auto next = h * 0.5 + here;
      return std::pair{next, next};
    });
    return kiln::outputs(last, all);
  }
  /// Two states that are swapped, two sequences; an output twice, an output of the previous step, and the slice itself
  /// as an output.
  constexpr auto several(X x, X y, H a0, H b0) const {
    auto step = [](auto state, auto here) {
      auto [a, b] = state;
      auto [u, v] = here;
      auto next = a * 0.5 + u;
      return std::pair{std::tuple{b, next}, std::tuple{next, a, v, next}};
    };
    auto [last, all] = kiln::scan(std::tuple{a0, b0}, std::tuple{x, y}, step);
    auto [a, b] = last;
    auto [next, before, slice, again] = all;
    return kiln::outputs(a, b, next, before, slice, again);
  }
  /// Without a state, with a captured value, and with the step's number.
  constexpr auto each(X x, H outside) const {
    auto scaled = outside * 2;
    auto [none, all] = kiln::scan(std::tuple<>(), std::tuple{x, kiln::positions<0>(x)}, [&](auto, auto here) {
      auto [u, step] = here;
      return std::pair{std::tuple<>(), kiln::where(kiln::less(step, 2), u, scaled)};
    });
    return all;
  }
  /// Sequences of different lengths: after the end the state is unchanged and outputs are 0.
  constexpr auto lengths(X x, kiln::Tensor<kiln::i32, B> n) const {
    auto on = kiln::less(kiln::reshape<T, 1>(kiln::positions<0>(x)), n);
    auto [last, all] = kiln::scan(kiln::zeros<kiln::f32, B, 9>(x), std::tuple{x, on}, [](auto h, auto here) {
      auto next = h * 0.5 + std::get<0>(here);
      auto goes_on = kiln::reshape<B, 1>(std::get<1>(here));
      return std::pair{kiln::where(goes_on, next, h), kiln::where(goes_on, next, 0)};
    });
    return kiln::outputs(last, all);
  }
  /// Tokens as input, a carried argmax, and embedding lookups in the step.
  constexpr auto tokens(kiln::Tensor<kiln::i32, T, B> x) const {
    auto [last, all] = kiln::scan(kiln::zeros<kiln::i32, B>(x), x, [&](auto before, auto here) {
      return std::pair{kiln::argmax(table(here) + table(before)), table(before)};
    });
    return kiln::outputs(last, all);
  }
  /// Nested loops, a loop in a stack, and a loop around a stack.
  constexpr auto nested(kiln::Tensor<kiln::f32, S, T, 9> x) const {
    auto [last, all] = kiln::scan(kiln::zeros<kiln::f32, 9>(x), x, [](auto outer, auto rows) {
      auto [end, states] = kiln::scan<kiln::Direction::reverse>(outer, rows, [](auto inner, auto row) {
        auto next = inner * 0.5 + row;
        return std::pair{next, next};
      });
      return std::pair{end, states};
    });
    return kiln::outputs(last, all);
  }
  constexpr auto stacks(X x) const {
    auto [last, all] = kiln::scan(kiln::zeros<kiln::f32, B, 9>(x), decays(x), [&](auto h, auto here) {
      auto next = doubled(h * 0.125) + here;
      return std::pair{next, next};
    });
    return kiln::outputs(last, all);
  }
  /// One step, and a fixed number of steps.
  constexpr auto fixed(kiln::Tensor<kiln::f32, 1, 9> one, kiln::Tensor<kiln::f32, 5, 9> five) const {
    auto step = [](auto h, auto here) {
      auto next = h * 0.5 + here;
      return std::pair{next, next};
    };
    auto [a, as] = kiln::scan(kiln::zeros<kiln::f32, 9>(one), one, step);
    auto [b, bs] = kiln::scan(a, five, step);
    return kiln::outputs(a, as, b, bs);
  }

  /// A stack that carries two values, with a constant for each layer.
  constexpr auto two_values(X x, H y) const {
    auto [u, v] = crossed(std::tuple{x, y}, kiln::per_layer(kiln::constant<kiln::f32, 3>(x, {0.5, -1, 2})));
    return kiln::outputs(u, v);
  }
  /// Layers of two types, of which the last period is incomplete; their constants are an input.
  constexpr auto pattern(X x, kiln::Tensor<kiln::f32, 8> gates) const {
    auto [last, all] = layers.with_outputs(x, kiln::per_layer(gates));
    return kiln::outputs(last, all);
  }
  /// Ends with step n.
  constexpr auto ending(X x, kiln::Tensor<kiln::i32, 1> n) const {
    auto end = kiln::reshape<>(n);
    auto [last, all, count] =
        kiln::scan_until(kiln::zeros<kiln::f32, B, 9>(x), std::tuple{x, kiln::positions<0>(x)}, [&](auto h, auto here) {
          auto [u, step] = here;
          auto next = h * 0.5 + u;
          return std::tuple{next, std::tuple{next, step + 1, kiln::less(step, end)}, kiln::equal(step, end)};
        });
    auto [states, steps, early] = all;
    return kiln::outputs(last, states, steps, kiln::cast<kiln::i32>(early), count);
  }
  /// A loop that ends early, in another loop.
  constexpr auto ending_again(kiln::Tensor<kiln::f32, S, T, 9> x, kiln::Tensor<kiln::i32, S> n) const {
    auto [last, all] = kiln::scan(kiln::zeros<kiln::f32, 9>(x), std::tuple{x, n}, [](auto outer, auto here) {
      auto [rows, end] = here;
      auto [h, states, count] =
          kiln::scan_until(outer, std::tuple{rows, kiln::positions<0>(rows)}, [&](auto inner, auto row) {
            auto next = inner * 0.5 + std::get<0>(row);
            return std::tuple{next, next, kiln::equal(std::get<1>(row), end)};
          });
      return std::pair{h, std::tuple{states, count}};
    });
    return kiln::outputs(last, std::get<0>(all), std::get<1>(all));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("two_values", &Scan::two_values),
                      kiln::entry("pattern", &Scan::pattern),
                      kiln::entry("ending", &Scan::ending),
                      kiln::entry("ending_again", &Scan::ending_again),
                      kiln::entry("elman", &Scan::elman),
                      kiln::entry("reverse", &Scan::reverse),
                      kiln::entry("several", &Scan::several),
                      kiln::entry("each", &Scan::each),
                      kiln::entry("lengths", &Scan::lengths),
                      kiln::entry("tokens", &Scan::tokens),
                      kiln::entry("nested", &Scan::nested),
                      kiln::entry("stacks", &Scan::stacks),
                      kiln::entry("fixed", &Scan::fixed)};
  }
};

KILN_MODEL(ops_scan, Scan)
