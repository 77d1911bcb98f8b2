// SPDX-License-Identifier: Apache-2.0
//
// A tone control for blocks of audio: a biquad filter (a second-order IIR), then soft clipping. An IIR filter reads its
// own results, sample by sample. As a loop of the language that is a kernel call for each sample; as a function of the
// program it is ten lines of C.
#include <kiln/generator.h>

inline constexpr kiln::Dim N{"samples", 1, 512};
inline constexpr std::int64_t channels = 2;

struct Tone : kiln::Model {
  kiln::State<kiln::f32, 2, channels> memory{"memory"}; // of the filter, from one block to the next

  constexpr auto play(kiln::Tensor<kiln::f32, N, channels> audio, kiln::Tensor<kiln::f32, 5> coefficients) const {
    auto [filtered, next] =
        kiln::custom<"biquad", kiln::Tensor<kiln::f32, N, channels>, kiln::Tensor<kiln::f32, 2, channels>>(
            audio, coefficients, memory.read(audio));
    memory.store(next);
    return kiln::tanh(filtered * 1.5);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("play", &Tone::play, {"audio", "coefficients"}, {"out"})};
  }
};

KILN_MODEL(tone, Tone)
