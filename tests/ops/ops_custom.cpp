// SPDX-License-Identifier: Apache-2.0
// Functions of the program, with operands and results in every place that the memory planner distinguishes.
#include "dims.h"

/// A function that takes and returns a value of the layer's type, with a parameter of each layer.
struct Blended {
  constexpr auto forward(const kiln::tensor auto &x) const {
    auto gain = kiln::parameter<kiln::f32, 9>(x, "gain");
    return kiln::custom<"blended", kiln::Tensor<kiln::f32, T, B, 9>>(x, gain);
  }
};

struct Custom : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, B, 9>;
  using Row = kiln::Tensor<kiln::f32, B, 9>;
  kiln::Stack<3, Blended> layers{"layers"};

  /// From an input to a result, and from values of kernels to values of kernels; its workspace has one row.
  constexpr auto sorted(X x) const {
    auto sort = [](const auto &rows) { return kiln::custom<"sorted", X>({.workspace = 36}, rows); };
    return kiln::outputs(sort(x), sort(x * 2 + 1) * 0.5);
  }
  /// Every element type that has a C type, several results of different types, and one that nothing reads.
  constexpr auto mixed(X x, kiln::Tensor<kiln::i32, T> indices) const {
    auto [counts, positive, sums, unread] =
        kiln::custom<"mixed", kiln::Tensor<kiln::i32, T>, kiln::Tensor<kiln::boolean, T, B, 9>,
                     kiln::Tensor<kiln::f32, T, B>, kiln::Tensor<kiln::i8, 5>>(
            {.workspace = 8 * T + 3}, x, indices, kiln::less(x, 0.5), kiln::cast<kiln::i8>(indices));
    return kiln::outputs(counts, kiln::where(positive, x, 0), sums);
  }
  /// Operands that no kernel writes: a parameter, constants, slices of rows, a reshaped input; and a transposed one.
  constexpr auto sources(kiln::Tensor<kiln::f32, T, 9> x) const {
    auto weight = kiln::parameter<kiln::f32, 9>(x, "weight");
    auto numbers = kiln::constant<kiln::f32, 9>(x, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    return kiln::custom<"sources", kiln::Tensor<kiln::f32, 9>>(
        weight, numbers, kiln::zeros<kiln::f32, 9>(x) + 2, kiln::last<0, 1>(x), kiln::slice<0, 0, 1>(x),
        kiln::reshape<9 * T>(x), kiln::transpose<1, 0>(x), kiln::positions<0>(x));
  }
  /// Results that a loop carries, swaps and stacks, and one that a stack of layers carries.
  constexpr auto looped(X x, Row a0, Row b0) const {
    auto [last, all] = kiln::scan(std::tuple{a0, b0}, x, [](auto state, auto here) {
      auto [a, b] = state;
      auto [next, difference] = kiln::custom<"step", Row, Row>(a, here);
      return std::pair{std::tuple{b, next}, std::tuple{difference, next}};
    });
    auto [a, b] = last;
    auto [differences, nexts] = all;
    return kiln::outputs(a, b, differences, nexts, layers(x));
  }
  /// A value that is returned twice, and equal calls.
  constexpr auto twice(X x) const {
    auto y = kiln::custom<"sorted", X>({.workspace = 36}, x), z = kiln::custom<"sorted", X>({.workspace = 36}, x);
    return kiln::outputs(y, y, y + z);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("sorted", &Custom::sorted), kiln::entry("mixed", &Custom::mixed),
                      kiln::entry("sources", &Custom::sources), kiln::entry("looped", &Custom::looped),
                      kiln::entry("twice", &Custom::twice)};
  }
};

KILN_MODEL(ops_custom, Custom)
