// SPDX-License-Identifier: Apache-2.0
// Layers of streams, which continue from call to call.
#include <kiln/generator.h>

inline constexpr kiln::Dim N{"chunks", 1, 12}, T{"frames", 1, 96}, C{"context", T, 96};

struct Streaming : kiln::Model {
  static constexpr int width = 12;
  // Calls of whole chunks: a convolution of every second row, then attention to the chunk and two before it.
  kiln::CausalConv1d<6, width, 3, kiln::Conv1dOptions{.stride = 2, .dilation = 2, .groups = 2}> halve{"halve"};
  kiln::StreamingAttention<width, 3, 4, 8> attend{"attend"};
  // Calls of any number of rows: a convolution of each channel, attention to the last nine rows, a recurrent layer.
  kiln::CausalConv1d<6, 6, 5, kiln::Conv1dOptions{.groups = 6}, false> deep{"deep"};
  kiln::CausalConv1d<6, width, 3, kiln::Conv1dOptions{.dilation = 3}> wide{"wide"};
  kiln::MultiHeadAttention<width, 3> look{"look"}, sliding{"sliding"};
  kiln::Gru<width, width> gru{"gru"};
  kiln::State<kiln::f32, 1, width> memory{"memory"};

  constexpr auto convolve(kiln::Tensor<kiln::f32, 8 * N, 6> x) const { return halve(x); }
  constexpr auto chunks(kiln::Tensor<kiln::f32, 4 * N, width> x) const { return attend(x); }
  constexpr auto chunk(kiln::Tensor<kiln::f32, 4, width> x) const { return attend(x); }
  constexpr auto frames(kiln::Tensor<kiln::f32, T, 6> x) const {
    auto y = wide(deep(x));
    auto [all, last] = gru(y + look(y, kiln::cached<C> | kiln::window(9)), memory.read(y));
    memory.store(last);
    return all;
  }

  /// A cache of the window's rows only.
  constexpr auto window(kiln::Tensor<kiln::f32, T, width> x) const { return sliding(x, kiln::cached_window<C, 37>); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("convolve", &Streaming::convolve, {"x"}, {"y"}),
                      kiln::entry("chunks", &Streaming::chunks, {"x"}, {"y"}),
                      kiln::entry("chunk", &Streaming::chunk, {"x"}, {"y"}).batched(3),
                      kiln::entry("window", &Streaming::window, {"x"}, {"y"}),
                      kiln::entry("frames", &Streaming::frames, {"x"}, {"y"})};
  }
};

KILN_MODEL(streaming, Streaming)
