// SPDX-License-Identifier: Apache-2.0
// A model with one weight whose output every layer reads.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &shift) const {
    return kiln::tanh(linear(x)) + shift;
  }
  kiln::Linear<8, 8> linear{"linear"};
};

struct Common : kiln::Model {
  kiln::Linear<8, 8> common{"common"};
  kiln::Stack<5, Block> blocks{"blocks"};
  kiln::Linear<8, 4> head{"head"};

  constexpr auto loss(kiln::Tensor<kiln::f32, 3, 8> x, kiln::Tensor<kiln::i32, 3> targets) const {
    return kiln::cross_entropy(head(blocks(x, common(x))), targets);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::train("train", &Common::loss, {"x", "targets"}, {"loss"}, kiln::Sgd{.momentum = 0.9})
                          .accumulated(2)
                          .clipped(1)};
  }
};

} // namespace

KILN_MODEL(common, Common)
