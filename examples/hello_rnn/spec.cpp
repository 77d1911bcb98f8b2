// SPDX-License-Identifier: Apache-2.0
//
// An Elman network over the characters h, e, l, o: h' = tanh(W_xh x + W_hh h + b), logits W_hy h' + c (Elman 1990). A
// one-hot vector x times a matrix is a row of it, so W_xh is a table.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"steps", 1, 64};

struct HelloRnn : kiln::Model {
  static constexpr kiln::Names inputs{"characters", "state"}, outputs{"scores", "next_state"};
  kiln::Embedding<4, 3> xh{"xh"};
  kiln::Linear<3, 3> hh{"hh"};
  kiln::Linear<3, 4> hy{"hy"};

  constexpr auto forward(kiln::Tensor<kiln::i32, T> characters, kiln::Tensor<kiln::f32, 3> state) const {
    auto [last, all] = kiln::scan(state, xh(characters), [&](auto h, auto x) {
      auto next = kiln::tanh(x + hh(h));
      return std::pair{next, next};
    });
    return kiln::outputs(hy(all), last);
  }
};

KILN_MODEL(hello_rnn, HelloRnn)
