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

struct Scan : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, B, 9>;
  using H = kiln::Tensor<kiln::f32, B, 9>;
  kiln::Linear<9, 7> input{"input"};
  kiln::Linear<7, 7> hidden{"hidden"};
  kiln::Embedding<29, 11> table{"table"};
  kiln::Stack<3, Decay> decays{"decays"};
  kiln::Stack<2, Doubled> doubled{"doubled"};

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

  static constexpr auto entries() {
    return std::tuple{kiln::entry("elman", &Scan::elman),     kiln::entry("reverse", &Scan::reverse),
                      kiln::entry("several", &Scan::several), kiln::entry("each", &Scan::each),
                      kiln::entry("lengths", &Scan::lengths), kiln::entry("tokens", &Scan::tokens),
                      kiln::entry("nested", &Scan::nested),   kiln::entry("stacks", &Scan::stacks),
                      kiln::entry("fixed", &Scan::fixed)};
  }
};

KILN_MODEL(ops_scan, Scan)
