// SPDX-License-Identifier: Apache-2.0
// Two entries that share weights, for programs with several models.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 20};

struct Pair : kiln::Model {
  kiln::Linear<6, 10> up{"up"};
  kiln::Linear<10, 6> down{"down"};

  constexpr auto encode(kiln::Tensor<kiln::f32, rows, 6> x) const { return kiln::tanh(up(x)); }
  constexpr auto cycle(kiln::Tensor<kiln::f32, rows, 6> x) const {
    return kiln::outputs(down(kiln::tanh(up(x))), kiln::softmax(x));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("encode", &Pair::encode, {"x"}, {"code"}),
                      kiln::entry("cycle", &Pair::cycle, {"x"}, {"y", "shares"})};
  }
};

KILN_MODEL(pair, Pair)
