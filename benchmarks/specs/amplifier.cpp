// SPDX-License-Identifier: Apache-2.0
// A GRU of width 16 that keeps its state from block to block of a stream, or whose state the program keeps.
#include <kiln/generator.h>

inline constexpr kiln::Dim samples{"samples", 1, 256};

struct Amplifier : kiln::Model {
  kiln::Gru<1, 16> gru{"gru"};
  kiln::Linear<16, 1, false> out{"out"};

  constexpr auto play(kiln::Tensor<kiln::f32, samples, 1> clean) const {
    kiln::State<kiln::f32, 1, 16> heard("heard");
    auto [all, last] = gru(clean, heard.read(clean));
    heard.store(last);
    return out(all);
  }
  constexpr auto play_from(kiln::Tensor<kiln::f32, samples, 1> clean, kiln::Tensor<kiln::f32, 1, 16> heard) const {
    auto [all, last] = gru(clean, heard);
    return kiln::outputs(out(all), last);
  }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("play", &Amplifier::play, {"clean"}, {"driven"}),
                      kiln::entry("play_from", &Amplifier::play_from, {"clean", "heard"}, {"driven", "last"})};
  }
};

KILN_MODEL(amplifier, Amplifier)
