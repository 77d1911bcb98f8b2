// SPDX-License-Identifier: Apache-2.0
//
// A mixture of 16 experts, 2 for each token: 24 tokens, and one.
#include <kiln/generator.h>

struct MixtureOfExperts : kiln::Model {
  kiln::Experts<256, 512, 16, 2> mlp{"mlp"};

  constexpr auto prefill(kiln::Tensor<kiln::f32, 24, 256> x) const { return mlp(x); }
  constexpr auto decode(kiln::Tensor<kiln::f32, 1, 256> x) const { return mlp(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("prefill", &MixtureOfExperts::prefill, {"x"}, {"y"}),
                      kiln::entry("decode", &MixtureOfExperts::decode, {"x"}, {"y"})};
  }
};

KILN_MODEL(experts, MixtureOfExperts)
