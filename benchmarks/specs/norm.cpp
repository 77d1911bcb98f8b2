// SPDX-License-Identifier: Apache-2.0
//
// What goes over rows or elements once: layer norm, softmax, GELU.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 16384};

struct Norm : kiln::Model {
  kiln::LayerNorm<768> norm{"norm"};

  constexpr auto run_layer_norm(kiln::Tensor<kiln::f32, rows, 768> x) const { return norm(x); }
  constexpr auto run_softmax(kiln::Tensor<kiln::f32, rows, 512> x) const { return kiln::softmax(x); }
  constexpr auto run_gelu(kiln::Tensor<kiln::f32, rows, 3072> x) const { return kiln::gelu(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("layer_norm", &Norm::run_layer_norm, {"x"}, {"y"}),
                      kiln::entry("softmax", &Norm::run_softmax, {"x"}, {"y"}),
                      kiln::entry("gelu", &Norm::run_gelu, {"x"}, {"y"})};
  }
};

KILN_MODEL(norm, Norm)
