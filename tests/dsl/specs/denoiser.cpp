// SPDX-License-Identifier: Apache-2.0
//
// The example of "Streaming models" in dsl/SPEC.md: a causal convolution and a recurrent layer over a stream of frames.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"frames", 1, 100};

struct Denoiser : kiln::Model {
  static constexpr std::int64_t bands = 40, width = 64, taps = 5;
  kiln::Conv1d<bands, width, taps> conv{"conv"};
  kiln::Gru<width, width> gru{"gru"};
  kiln::Linear<width, bands> gains{"gains"};
  kiln::State<kiln::f32, taps - 1, bands> heard{"heard"}; // the frames that the next call's convolution reads again
  kiln::State<kiln::f32, 1, width> memory{"memory"};      // the last state of the recurrent layer, [layers, width]

  constexpr auto play(kiln::Tensor<kiln::f32, T, bands> frames) const {
    auto longer = kiln::concat<0>(heard.read(frames), frames); // [4 + frames, 40]
    heard.store(kiln::last<0, taps - 1>(longer));
    auto x = kiln::relu(conv(longer)); // [frames, 64]
    auto [y, last] = gru(x, memory.read(x));
    memory.store(last);
    return frames * kiln::sigmoid(gains(y));
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("play", &Denoiser::play, {"frames"}, {"clean"}).batched(16)};
  }
};

KILN_MODEL(denoiser, Denoiser)
