// SPDX-License-Identifier: Apache-2.0
//
// A deep averaging network (Iyyer et al. 2015), which classifies texts: the mean of the words' vectors, hidden layers,
// and a score for each class.
#pragma once

#include "kiln/dsl.h"

namespace dan {

struct Shape {
  std::int64_t vocabulary, layers, width, classes;
};

template <Shape S> struct Hidden {
  kiln::Linear<S.width, S.width> dense{"dense"};

  constexpr auto forward(const kiln::tensor auto &x) const { return kiln::tanh(dense(x)); }
};

template <Shape S> struct Classifier : kiln::Model {
  static constexpr kiln::Dim words{"tokens", 1, 512};
  static constexpr kiln::Names inputs{"tokens"}, outputs{"logits"};
  kiln::Embedding<S.vocabulary, S.width> embedding{"embedding"};
  kiln::Stack<S.layers, Hidden<S>> hidden{"hidden"};
  kiln::Linear<S.width, S.classes> output{"output"};

  constexpr auto forward(kiln::Tensor<kiln::i32, words> tokens) const {
    return output(hidden(kiln::mean<0>(embedding(tokens))));
  }
};

} // namespace dan
