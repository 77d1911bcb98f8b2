// SPDX-License-Identifier: Apache-2.0
//
// A guitar amplifier: a recurrent network that hears samples as a guitar gives them and says what an amplifier would
// make of them. What it has heard is a state, so that a call goes on where the one before ended.
#include <kiln/generator.h>

inline constexpr kiln::Dim samples{"samples", 1, 256};

struct Amp : kiln::Model {
  kiln::Gru<1, 16> gru{"gru"};
  kiln::Linear<16, 1> out{"out"};

  constexpr auto play(kiln::Tensor<kiln::f32, samples, 1> clean) const {
    kiln::State<kiln::f32, 1, 16> heard("heard");
    auto [all, last] = gru(clean, heard.read(clean));
    heard.store(last);
    return clean + out(all);
  }
  // One voice, and up to 16 at once.
  static constexpr auto entries() {
    return std::tuple{kiln::entry("play", &Amp::play, {"clean"}, {"driven"}).batched(16)};
  }
};

KILN_MODEL(amp, Amp)
