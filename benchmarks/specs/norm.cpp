// SPDX-License-Identifier: Apache-2.0
//
// Operations with one pass over rows or elements: norms, softmax, GELU, a gate, a look-up.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 16384};

struct Norm : kiln::Model {
  kiln::LayerNorm<768> norm{"norm"};
  kiln::RmsNorm<768> rms{"rms"};
  kiln::Embedding<30522, 768> table{"table"};

  constexpr auto run_layer_norm(kiln::Tensor<kiln::f32, rows, 768> x) const { return norm(x); }
  constexpr auto run_rms_norm(kiln::Tensor<kiln::f32, rows, 768> x) const { return rms(x); }
  constexpr auto run_softmax(kiln::Tensor<kiln::f32, rows, 512> x) const { return kiln::softmax(x); }
  constexpr auto run_gelu(kiln::Tensor<kiln::f32, rows, 3072> x) const { return kiln::gelu(x); }
  constexpr auto run_gate(kiln::Tensor<kiln::f32, rows, 3072> x, kiln::Tensor<kiln::f32, rows, 3072> z) const {
    return kiln::silu(x) * z;
  }
  constexpr auto run_embedding(kiln::Tensor<kiln::i32, rows> tokens) const { return table(tokens); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("layer_norm", &Norm::run_layer_norm, {"x"}, {"y"}),
                      kiln::entry("rms_norm", &Norm::run_rms_norm, {"x"}, {"y"}),
                      kiln::entry("softmax", &Norm::run_softmax, {"x"}, {"y"}),
                      kiln::entry("gelu", &Norm::run_gelu, {"x"}, {"y"}),
                      kiln::entry("gate", &Norm::run_gate, {"x", "z"}, {"y"}),
                      kiln::entry("embedding", &Norm::run_embedding, {"tokens"}, {"y"})};
  }
};

KILN_MODEL(norm, Norm)
