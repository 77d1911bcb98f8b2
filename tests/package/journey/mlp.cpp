// SPDX-License-Identifier: Apache-2.0
#include <kiln/generator.h>

inline constexpr kiln::Dim N{"rows", 1, 1000}; // known at run time

struct Mlp : kiln::Model {
  kiln::Linear<4, 32> hidden{"hidden"};
  kiln::Linear<32, 3> out{"out"};

  constexpr auto forward(kiln::Tensor<kiln::f32, N, 4> x) const { return kiln::softmax(out(kiln::relu(hidden(x)))); }

  static constexpr auto entries() { return std::tuple{kiln::entry("forward", &Mlp::forward, {"x"}, {"classes"})}; }
};

KILN_MODEL(mlp, Mlp)
