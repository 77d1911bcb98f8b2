// SPDX-License-Identifier: Apache-2.0
// A streaming keyword spotter: convolutions over what was heard, a GRU, and attention over the last frames. All that it
// knows of earlier frames is in states, so that any number of frames may be given at once.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"frames", 1, 16};
inline constexpr int bins = 40, width = 64, heads = 4, window = 50, words = 12;

/// Returns the newest Past rows of earlier calls and these.
template <int Past> constexpr auto with_past(const kiln::tensor auto &x, kiln::State<kiln::f32, Past, width> past) {
  auto longer = kiln::concat<0>(past.read(x), x);
  past.store(kiln::last<0, Past>(longer));
  return longer;
}

/// A depthwise and a pointwise convolution; the window ends with the newest frame.
template <int Kernel, int Dilation> struct Separable : kiln::Layer<Separable<Kernel, Dilation>> {
  using kiln::Layer<Separable>::Layer;
  static constexpr int past = (Kernel - 1) * Dilation;
  static constexpr kiln::Conv1dOptions by_channel{.dilation = Dilation, .groups = width};
  kiln::Conv1d<width, width, Kernel, by_channel, false> depthwise{"depthwise"};
  kiln::BatchNorm1d<width> bn1{"bn1"}, bn2{"bn2"};
  kiln::Conv1d<width, width, 1, kiln::Conv1dOptions{}, false> pointwise{"pointwise"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto heard = with_past<past>(x, kiln::State<kiln::f32, past, width>("heard"));
    return x + kiln::relu(bn2(pointwise(kiln::relu(bn1(depthwise(heard))))));
  }
};

struct Spotter : kiln::Model {
  kiln::Conv1d<bins, width, 3> stem{"stem"};
  Separable<5, 1> near{"blocks.0"};
  Separable<5, 2> middle{"blocks.1"};
  Separable<5, 4> far{"blocks.2"};
  kiln::Gru<width, width> gru{"gru"};
  kiln::Linear<width, width> q{"q_proj"}, k{"k_proj"}, v{"v_proj"}, out{"out_proj"};
  kiln::LayerNorm<width> norm{"norm"};
  kiln::Linear<width, words> head{"head"};

  /// Each frame attends to itself and to the frames before it in the window that were heard.
  constexpr auto attended(const kiln::tensor auto &x) const {
    constexpr int past = window - 1;
    auto keys = with_past<past>(k(x), kiln::State<kiln::f32, past, width>("keys"));
    auto values = with_past<past>(v(x), kiln::State<kiln::f32, past, width>("values"));
    kiln::State<kiln::i32, 1> frames("frames"); // heard before this call, at most `past`
    auto before = frames.read(x);
    frames.store(kiln::minimum(before + kiln::last<0, 1>(kiln::positions<0>(x)) + 1, past));
    auto key = kiln::positions<0>(keys);
    auto first = kiln::maximum(kiln::reshape<T, 1>(kiln::positions<0>(x)), past - before);
    auto mask = kiln::where(kiln::less(key, first), -3e38, kiln::cast<kiln::f32>(key) * 0);
    return kiln::attention<heads>(q(x), keys, values, kiln::causal | kiln::mask(mask));
  }

  constexpr auto listen(kiln::Tensor<kiln::f32, T, bins> mel) const {
    kiln::State<kiln::f32, 2, bins> heard("heard");
    auto longer = kiln::concat<0>(heard.read(mel), mel);
    heard.store(kiln::last<0, 2>(longer));
    auto x = far(middle(near(kiln::relu(stem(longer)))));

    kiln::State<kiln::f32, 1, width> hidden("hidden");
    auto [all, last] = gru(x, hidden.read(x));
    hidden.store(last);
    return head(norm(all + out(attended(all))));
  }

  static constexpr auto entries() { return std::tuple{kiln::entry("listen", &Spotter::listen, {"mel"}, {"logits"})}; }
};

KILN_MODEL(spotter, Spotter)
