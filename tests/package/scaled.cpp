// SPDX-License-Identifier: Apache-2.0
// A model with scales that follow from weights only.
#include <kiln/generator.h>

struct Scaled : kiln::Model {
  kiln::Linear<6, 10> up{"up"};
  kiln::BatchNorm1d<10> norm{"norm"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 3, 6> x) const { return norm(up(x)); }

  static constexpr auto entries() { return std::tuple{kiln::entry("forward", &Scaled::forward, {"x"}, {"y"})}; }
};

KILN_MODEL(scaled, Scaled)
