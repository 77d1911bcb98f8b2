// SPDX-License-Identifier: Apache-2.0
//
// A small model with dropout for data-parallel training.
#pragma once

#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

constexpr std::int64_t rows = 6, width = 16, hidden = 2048, classes = 40;

struct Block : kiln::Layer<Block> {
  using Layer::Layer;
  constexpr auto forward(const kiln::tensor auto &x) const {
    return x + kiln::dropout(down(kiln::gelu(up(norm(x)))), 0.25) + shift(x);
  }
  kiln::LayerNorm<width> norm{"norm"};
  kiln::Linear<width, hidden> up{"up"};
  kiln::Linear<hidden, width> down{"down"};
  kiln::Linear<width, width> shift{"shift"};
};

/// A training step has `micro` micro-batches.
template <int micro, int depth = 3> struct Trained : kiln::Model {
  using Words = kiln::Tensor<kiln::i32, rows>;
  kiln::Embedding<classes, width> words{"words"};
  kiln::Stack<depth, Block> blocks{"blocks"};
  kiln::LayerNorm<width> norm{"norm"};

  constexpr auto loss(Words tokens, Words targets) const {
    return kiln::cross_entropy(kiln::logits(norm(blocks(words(tokens))), words), targets);
  }
  /// With the usual epsilon of 1e-8, a gradient that consists of rounding errors only moves its weight by the whole
  /// learning rate, so results that differ in summation order only would diverge. Gradients are about 1e-3 here.
  static constexpr kiln::AdamW even{.epsilon = 1e-4};
  static constexpr auto entries() {
    auto adam = kiln::train("train", &Trained::loss, {"tokens", "targets"}, {"loss"}, even).clipped(0.25);
    auto descend = kiln::train("descend", &Trained::loss, {"tokens", "targets"}, {"loss"}, kiln::Sgd{});
    auto evaluate = kiln::entry("evaluate", &Trained::loss, {"tokens", "targets"}, {"loss"});
    if constexpr (micro == 1)
      return std::tuple{adam, descend, evaluate};
    else
      return std::tuple{adam.accumulated(micro), descend.accumulated(micro).checkpointed(), evaluate};
  }
};

} // namespace
