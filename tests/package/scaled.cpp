// SPDX-License-Identifier: Apache-2.0
// A model with scales that are computed from weights only: of a batch norm, and of each layer in a stack.
#include <kiln/generator.h>

struct Decay {
  constexpr auto forward(const kiln::tensor auto &x) const {
    auto v = kiln::parameter<kiln::f32, 10, 3>(x, "v");
    return x * (kiln::exp(kiln::parameter<kiln::f32, 10>(x, "log")) / kiln::sqrt(kiln::sum<1>(v * v)));
  }
};

struct Scaled : kiln::Model {
  kiln::Linear<6, 10> up{"up"};
  kiln::BatchNorm1d<10> norm{"norm"};
  kiln::Stack<3, Decay> decays{"decays"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 3, 6> x) const { return decays(norm(up(x))); }

  static constexpr auto entries() { return std::tuple{kiln::entry("forward", &Scaled::forward, {"x"}, {"y"})}; }
};

KILN_MODEL(scaled, Scaled)
