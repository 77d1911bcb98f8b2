// SPDX-License-Identifier: Apache-2.0
// Two decaying states: a computed one, and one that is only copied.
#include <kiln/generator.h>

struct Decay : kiln::Model {
  constexpr auto forward(kiln::Tensor<kiln::f32, 3, 5> x) const {
    kiln::State<kiln::f32, 3, 5> halved("halved"), moved("moved");
    auto next = halved.read(x) * 0.5 + x;
    auto before = moved.read(x);
    halved.store(next);
    moved.store(x);
    return kiln::outputs(next, before);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &Decay::forward, {"x"}, {"next", "before"})};
  }
};

KILN_MODEL(decay, Decay)
