// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, each from zero states over whole sequences, and from given states with lengths.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"steps", 1, 33};
inline constexpr kiln::Dim B{"batch", 1, 3};

struct Recurrent : kiln::Model {
  static constexpr kiln::RecurrentOptions deep{.layers = 2, .bias = false}, both{.bidirectional = true};
  static constexpr kiln::RecurrentOptions deep_both{.layers = 2, .bidirectional = true};
  using X = kiln::Tensor<kiln::f32, T, B, 5>;
  using N = kiln::Tensor<kiln::i32, B>;
  template <int Passes> using H = kiln::Tensor<kiln::f32, Passes, B, 7>;

  kiln::Rnn<5, 7> tanh{"rnn"};
  kiln::Recurrent<kiln::ElmanCell<kiln::Activation::relu>, 5, 7, deep> rectified{"relu"};
  kiln::Lstm<5, 7, deep_both> memory{"lstm"};
  kiln::Gru<5, 7, both> gated{"gru"};

  static constexpr auto flat(const auto &result) {
    if constexpr (kiln::tensor<std::remove_cvref_t<decltype(result.last)>>)
      return kiln::outputs(result.outputs, result.last);
    else
      return std::tuple_cat(std::tuple{result.outputs}, result.last);
  }

  constexpr auto rnn(X x) const { return flat(tanh(x)); }
  constexpr auto rnn_padded(X x, N n, H<1> h) const { return flat(tanh(x, h, n)); }
  constexpr auto relu(X x) const { return flat(rectified(x)); }
  constexpr auto relu_padded(X x, N n, H<2> h) const { return flat(rectified(x, h, n)); }
  constexpr auto lstm(X x) const { return flat(memory(x)); }
  constexpr auto lstm_padded(X x, N n, H<4> h, H<4> c) const { return flat(memory(x, std::tuple{h, c}, n)); }
  constexpr auto gru(X x) const { return flat(gated(x)); }
  constexpr auto gru_padded(X x, N n, H<2> h) const { return flat(gated(x, h, n)); }
  /// One sequence; only the last state is an output.
  constexpr auto last(kiln::Tensor<kiln::f32, T, 5> x) const { return std::get<0>(memory(x).last); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("rnn", &Recurrent::rnn),   kiln::entry("rnn_padded", &Recurrent::rnn_padded),
                      kiln::entry("relu", &Recurrent::relu), kiln::entry("relu_padded", &Recurrent::relu_padded),
                      kiln::entry("lstm", &Recurrent::lstm), kiln::entry("lstm_padded", &Recurrent::lstm_padded),
                      kiln::entry("gru", &Recurrent::gru),   kiln::entry("gru_padded", &Recurrent::gru_padded),
                      kiln::entry("last", &Recurrent::last)};
  }
};

KILN_MODEL(recurrent, Recurrent)
