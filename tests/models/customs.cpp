// SPDX-License-Identifier: Apache-2.0
// Functions of the program in entries that the compiler derives: for several sequences, and for gradients.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"samples", 1, 40};
inline constexpr std::int64_t width = 4;

struct Customs : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, width>;
  using Row = kiln::Tensor<kiln::f32, 1, width>;
  kiln::Linear<width, width> fc{"fc"};
  kiln::State<kiln::f32, 1, width> memory{"memory"};

  /// A recursive average with a state, between row-wise operations.
  constexpr auto smooth(X x) const {
    auto [y, next] = kiln::custom<"smooth", X, Row>({.workspace = 16 * T}, fc(x), memory.read(x));
    memory.store(next);
    return kiln::outputs(fc(y), next);
  }
  /// A loss through a function with a derivative, which also has operands that are integers or no parameters.
  constexpr auto loss(X x, X target) const {
    auto scale = kiln::parameter<kiln::f32, width>(x, "scale");
    auto [y, count] = kiln::custom<"warp", X, kiln::Tensor<kiln::i32>>(
        {.workspace = 16 * T, .derivative = "warp_gradient"}, fc(x), scale, kiln::positions<0>(x));
    return kiln::outputs(kiln::mse(y, target), count);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("smooth", &Customs::smooth, {"x"}, {"y", "last"}).batched(3),
                      kiln::gradients("learn", &Customs::loss, {"x", "target"}, {"loss", "count"}).accumulated(2),
                      kiln::entry("evaluate", &Customs::loss, {"x", "target"}, {"loss", "count"})};
  }
};

KILN_MODEL(customs, Customs)
