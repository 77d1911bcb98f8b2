// SPDX-License-Identifier: Apache-2.0
//
// One token of a layer with the shape of Qwen3-30B-A3B: 8 experts of width 768 for a token of width 2048, with int4
// weights. It has 16 experts instead of 128, since those that are not chosen are not read.
#include <kiln/generator.h>

struct Int4Experts : kiln::Model {
  kiln::Experts<2048, 768, 16, 8, kiln::ExpertsOptions{.weight = kiln::int4<32>}> mlp{"mlp"};

  constexpr auto decode(kiln::Tensor<kiln::f32, 1, 2048> x) const { return mlp(x); }

  static constexpr auto entries() { return std::tuple{kiln::entry("decode", &Int4Experts::decode, {"x"}, {"y"})}; }
};

KILN_MODEL(experts_int4, Int4Experts)
