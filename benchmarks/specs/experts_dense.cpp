// SPDX-License-Identifier: Apache-2.0
//
// All 16 experts for each of 24 tokens, as one perceptron with the hidden elements of all of them: what a mixture takes
// that computes all experts and multiplies their results by gates, many of which are 0.
#include <kiln/generator.h>

struct DenseExperts : kiln::Model {
  kiln::Linear<256, 16, false> gate{"gate"};
  kiln::Linear<256, 16 * 512, false> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  kiln::Linear<16 * 512, 256, false> down_proj{"down_proj"};

  constexpr auto prefill(kiln::Tensor<kiln::f32, 24, 256> x) const {
    auto gates = kiln::reshape<24, 16, 1>(kiln::softmax(gate(x)));
    auto hidden = kiln::reshape<24, 16, 512>(kiln::silu(gate_proj(x)) * up_proj(x));
    return down_proj(kiln::reshape<24, 16 * 512>(hidden * gates));
  }
  static constexpr auto entries() { return std::tuple{kiln::entry("prefill", &DenseExperts::prefill, {"x"}, {"y"})}; }
};

KILN_MODEL(experts_dense, DenseExperts)
