// SPDX-License-Identifier: Apache-2.0
//
// Attention with 12 heads of width 64, without its projections: full, causal, and of a single query, also with a
// window.
#include <kiln/generator.h>

inline constexpr kiln::Dim tokens{"tokens", 1, 2048}, context{"context", 1, 32768};

struct Attention : kiln::Model {
  using Rows = kiln::Tensor<kiln::f32, tokens, 768>;

  constexpr auto run_full(Rows q, Rows k, Rows v) const { return kiln::attention<12>(q, k, v); }
  constexpr auto run_causal(Rows q, Rows k, Rows v) const { return kiln::attention<12>(q, k, v, kiln::causal); }

  constexpr auto run_decode(kiln::Tensor<kiln::f32, 1, 768> q, Rows k, Rows v) const {
    return kiln::attention<12>(q, k, v);
  }

  using Context = kiln::Tensor<kiln::f32, context, 768>;
  constexpr auto run_window(kiln::Tensor<kiln::f32, 1, 768> q, Context k, Context v) const {
    return kiln::attention<12>(q, k, v, kiln::causal | kiln::window(1024));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("full", &Attention::run_full, {"q", "k", "v"}, {"y"}),
                      kiln::entry("causal", &Attention::run_causal, {"q", "k", "v"}, {"y"}),
                      kiln::entry("decode", &Attention::run_decode, {"q", "k", "v"}, {"y"}),
                      kiln::entry("window", &Attention::run_window, {"q", "k", "v"}, {"y"})};
  }
};

KILN_MODEL(attention, Attention)
