// SPDX-License-Identifier: Apache-2.0
// A small amplifier: a GRU over samples, whose state is kept between blocks.
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
  static constexpr auto entries() { return std::tuple{kiln::entry("play", &Amplifier::play, {"clean"}, {"driven"})}; }
};

KILN_MODEL(silence, Amplifier)
