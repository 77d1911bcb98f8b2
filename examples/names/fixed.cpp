// SPDX-License-Identifier: Apache-2.0
//
// Sequence to sequence without attention (Cho et al. 2014): the decoder receives only one vector of the source, the
// encoder's last state.
#include "names.h"
#include <kiln/generator.h>

inline constexpr kiln::Dim S{"source_tokens", 1, names::source_tokens}, T{"target_tokens", 1, names::target_tokens};

struct Fixed : kiln::Model {
  static constexpr kiln::Names inputs{"source", "target"}, outputs{"logits"};
  static constexpr std::int64_t width = 64, read_width = 128, hidden = 192;

  kiln::Embedding<names::vocabulary, width> embedding{"embedding"};
  kiln::Gru<width, read_width> encoder{"encoder"};
  kiln::Linear<read_width, hidden> first{"first"};
  kiln::GruStep<width + read_width, hidden> cell{"cell"};
  kiln::Linear<hidden, names::vocabulary> head{"head"};

  constexpr auto forward(kiln::Tensor<kiln::i32, S> source, kiln::Tensor<kiln::i32, T> target) const {
    auto context = encoder(embedding(source)).last; // [1, read_width]
    auto step = [&](const auto &before, const auto &y) {
      auto next = cell(kiln::concat<-1>(kiln::reshape<1, width>(y), context), before);
      return std::pair{next, kiln::reshape<hidden>(next)};
    };
    auto [last, states] = kiln::scan(kiln::tanh(first(context)), embedding(target), step);
    return head(states);
  }
};

KILN_MODEL(names_fixed, Fixed)
