// SPDX-License-Identifier: Apache-2.0
//
// The linear layers of a transformer of width 768, and one for a vocabulary, for any number of rows; one entry each.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 512};

struct Contraction : kiln::Model {
  kiln::Linear<768, 768, false> out{"out"};
  kiln::Linear<768, 2304, false> qkv{"qkv"};
  kiln::Linear<768, 3072, false> up{"up"};
  kiln::Linear<3072, 768, false> down{"down"};
  kiln::Linear<768, 50257, false> head{"head"};

  constexpr auto run_out(kiln::Tensor<kiln::f32, rows, 768> x) const { return out(x); }
  constexpr auto run_qkv(kiln::Tensor<kiln::f32, rows, 768> x) const { return qkv(x); }
  constexpr auto run_up(kiln::Tensor<kiln::f32, rows, 768> x) const { return up(x); }
  constexpr auto run_down(kiln::Tensor<kiln::f32, rows, 3072> x) const { return down(x); }
  constexpr auto run_head(kiln::Tensor<kiln::f32, rows, 768> x) const { return head(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("out", &Contraction::run_out, {"x"}, {"y"}),
                      kiln::entry("qkv", &Contraction::run_qkv, {"x"}, {"y"}),
                      kiln::entry("up", &Contraction::run_up, {"x"}, {"y"}),
                      kiln::entry("down", &Contraction::run_down, {"x"}, {"y"}),
                      kiln::entry("head", &Contraction::run_head, {"x"}, {"y"})};
  }
};

KILN_MODEL(contraction, Contraction)
