// SPDX-License-Identifier: Apache-2.0
//
// Attention in bf16 with heads of width 64 and 128, a total width of 2048, without its projections.
#include <kiln/generator.h>

inline constexpr kiln::Dim tokens{"tokens", 1, 16384};

struct GpuAttention : kiln::Model {
  using Rows = kiln::Tensor<kiln::bf16, tokens, 2048>;

  template <int Heads> constexpr auto full(Rows q, Rows k, Rows v) const { return kiln::attention<Heads>(q, k, v); }
  template <int Heads> constexpr auto causal(Rows q, Rows k, Rows v) const {
    return kiln::attention<Heads>(q, k, v, kiln::causal);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("full_64", &GpuAttention::full<32>, {"q", "k", "v"}, {"y"}),
                      kiln::entry("causal_64", &GpuAttention::causal<32>, {"q", "k", "v"}, {"y"}),
                      kiln::entry("full_128", &GpuAttention::full<16>, {"q", "k", "v"}, {"y"}),
                      kiln::entry("causal_128", &GpuAttention::causal<16>, {"q", "k", "v"}, {"y"})};
  }
};

KILN_MODEL(gpu_attention, GpuAttention)
