// SPDX-License-Identifier: Apache-2.0
// Models for which pipeline parallelism is refused: one returns gradients to the caller, the other has a weight that
// one stage trains and another stage reads.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const { return kiln::tanh(linear(x)); }
  kiln::Linear<8, 8> linear{"linear"};
};

template <bool Trains> struct Given : kiln::Model {
  using X = kiln::Tensor<kiln::f32, 3, 8>;
  kiln::Linear<8, 8> first{"first"};
  kiln::Stack<2, Block> blocks{"blocks"};
  kiln::Linear<8, 4> head{"head"};

  constexpr auto loss(X x, kiln::Tensor<kiln::i32, 3> targets) const {
    return kiln::cross_entropy(head(blocks(first(x))), targets);
  }
  constexpr auto again(X x) const { return first(blocks(x)); }
  static constexpr auto entries() {
    if constexpr (Trains)
      return std::tuple{kiln::train("train", &Given::loss, {"x", "targets"}, {"loss"}, kiln::Sgd{}),
                        kiln::entry("again", &Given::again, {"x"}, {"y"})};
    else
      return std::tuple{kiln::gradients("slopes", &Given::loss, {"x", "targets"}, {"loss"})};
  }
};

} // namespace

KILN_MODEL(given, Given<GIVEN_TRAINS>)
