// SPDX-License-Identifier: Apache-2.0
//
// A guitar amplifier: a recurrent network that transforms a guitar's samples into an amplifier's output. Its history is
// a state, so that each call continues from the previous one.
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
  // An entry for one voice, and a batched one for up to 16.
  static constexpr auto entries() {
    return std::tuple{kiln::entry("play", &Amp::play, {"clean"}, {"driven"}).batched(16)};
  }
};

KILN_MODEL(amp, Amp)
