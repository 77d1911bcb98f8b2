// SPDX-License-Identifier: Apache-2.0
// A model whose gradients the caller gets, which stages do not return.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const { return kiln::tanh(linear(x)); }
  kiln::Linear<8, 8> linear{"linear"};
};

struct Given : kiln::Model {
  kiln::Stack<2, Block> blocks{"blocks"};
  kiln::Linear<8, 4> head{"head"};

  constexpr auto loss(kiln::Tensor<kiln::f32, 3, 8> x, kiln::Tensor<kiln::i32, 3> targets) const {
    return kiln::cross_entropy(head(blocks(x)), targets);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::gradients("slopes", &Given::loss, {"x", "targets"}, {"loss"})};
  }
};

} // namespace

KILN_MODEL(given, Given)
