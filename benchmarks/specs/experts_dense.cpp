// SPDX-License-Identifier: Apache-2.0
//
// All 16 experts for each of 24 tokens, what a mixture takes that computes all experts and multiplies their results by
// gates, many of which are 0: as products with the weights of each expert, and as one perceptron with the hidden
// elements of all of them.
#include <kiln/generator.h>

struct DenseExperts : kiln::Model {
  using X = kiln::Tensor<kiln::f32, 24, 256>;
  kiln::Linear<256, 16, false> gate{"gate"};
  kiln::Linear<256, 16 * 512, false> gate_proj{"gate_proj"}, up_proj{"up_proj"};
  kiln::Linear<16 * 512, 256, false> down_proj{"down_proj"};

  constexpr auto products(X x) const {
    auto hidden = kiln::silu(kiln::matmul(x, kiln::parameter<kiln::f32, 16, 256, 512>(x, "gates"))) *
                  kiln::matmul(x, kiln::parameter<kiln::f32, 16, 256, 512>(x, "ups"));
    auto results = kiln::matmul(hidden, kiln::parameter<kiln::f32, 16, 512, 256>(x, "downs"));
    auto gates = kiln::reshape<16, 24, 1>(kiln::transpose<1, 0>(kiln::softmax(gate(x))));
    return kiln::sum<0>(results * gates);
  }
  constexpr auto perceptron(X x) const {
    auto gates = kiln::reshape<24, 16, 1>(kiln::softmax(gate(x)));
    auto hidden = kiln::reshape<24, 16, 512>(kiln::silu(gate_proj(x)) * up_proj(x));
    return down_proj(kiln::reshape<24, 16 * 512>(hidden * gates));
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("products", &DenseExperts::products, {"x"}, {"y"}),
                      kiln::entry("perceptron", &DenseExperts::perceptron, {"x"}, {"y"})};
  }
};

KILN_MODEL(experts_dense, DenseExperts)
