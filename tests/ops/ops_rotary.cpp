// SPDX-License-Identifier: Apache-2.0
// Rotary positions: frequencies of published models, angles of i32 and f32 positions, positions per sequence and along
// several axes, heads of which only a part is rotated, adjacent pairs.
#include "dims.h"

inline constexpr kiln::Dim P{"positions", 1, 4096};

struct Rotary : kiln::Model {
  template <kiln::Dim... E> using X = kiln::Tensor<kiln::f32, E...>;
  template <kiln::Dim... E> using Places = kiln::Tensor<kiln::i32, E...>;
  static constexpr auto llama3 = kiln::frequencies<128>(500000).scaled(kiln::llama3_scaling(8, 8192));
  static constexpr auto yarn = kiln::frequencies<64>(1000000).scaled(kiln::yarn_scaling(4, 32768));

  constexpr auto scaled(Places<P> at) const {
    return kiln::outputs(kiln::sinusoidal(at, llama3), kiln::sinusoidal(at, yarn));
  }
  constexpr auto fractions(X<P> at) const {
    return kiln::outputs(kiln::sinusoidal<64>(at), kiln::sinusoidal(at, llama3),
                         kiln::sinusoidal(at, kiln::frequencies(std::array{0.0, 3.0, 100.0})));
  }
  /// A sequence's own positions, and those from one start on.
  constexpr auto placed(X<B, T, 24> x, Places<B, T> at, Places<B, 1> starts, Places<1> start) const {
    auto angles = kiln::sinusoidal<8>(at, 500.0);
    return kiln::outputs(kiln::rotary<3>(x, angles),
                         kiln::rotary<3>(x, kiln::sinusoidal<8>(kiln::positions<1>(x) + start)),
                         kiln::rotary<2>(x, kiln::positions<1>(x) + starts, kiln::frequencies<12>(100)));
  }
  constexpr auto partial(X<B, T, 30> x) const {
    auto at = kiln::positions<1>(x);
    return kiln::outputs(kiln::rotary<3>(x, at, kiln::frequencies<6>(100)),
                         kiln::rotary<1>(x, at, kiln::frequencies<2>()));
  }
  constexpr auto adjacent(X<T, 24> x, X<B, T, 30> y) const {
    using enum kiln::RotaryPairs;
    auto at = kiln::positions<0>(x);
    return kiln::outputs(kiln::rotary<3, adjacent>(x, at, kiln::frequencies<8>(100)),
                         kiln::rotary<3, adjacent>(y, at, kiln::frequencies<4>(100)));
  }
  /// Text, height and width; a picture's rows and columns.
  constexpr auto axes(X<B, T, 32> x, Places<3, B, T> at, X<2, T> places) const {
    return kiln::outputs(kiln::rotary<2>(x, at, kiln::frequencies<16>(100).sections({2, 3, 3})),
                         kiln::rotary<2>(x, at, kiln::frequencies<16>(100).interleaved_sections({4, 2, 2})),
                         kiln::rotary<4>(x, places, kiln::axial_frequencies<8, 2>(100)));
  }
  constexpr auto halves(X<T, 24> x) const {
    auto half = kiln::cast<kiln::f16>(x);
    return kiln::cast<kiln::f32>(kiln::rotary<3>(half, kiln::positions<0>(x), kiln::frequencies<8>(100)));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("scaled", &Rotary::scaled),     kiln::entry("fractions", &Rotary::fractions),
                      kiln::entry("placed", &Rotary::placed),     kiln::entry("partial", &Rotary::partial),
                      kiln::entry("adjacent", &Rotary::adjacent), kiln::entry("axes", &Rotary::axes),
                      kiln::entry("halves", &Rotary::halves)};
  }
};

KILN_MODEL(ops_rotary, Rotary)
