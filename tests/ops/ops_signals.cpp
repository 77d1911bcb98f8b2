// SPDX-License-Identifier: Apache-2.0
// Spectra of signals: frames of odd, prime and composite sizes, with and without windows and padding.
#include "dims.h"

struct Signals : kiln::Model {
  using Mono = kiln::Tensor<kiln::f32, B, 70>;
  static constexpr kiln::StftOptions plain{.hop = 7, .center = false}, odd{.hop = 9}, edge{.hop = 5,
                                                                               .padding = kiln::PadMode::edge};

  /// Frames of 30 samples with a shorter window, of 13 without one, and of 45 around each sample.
  constexpr auto spectra(Mono x, kiln::Tensor<kiln::f32, 27> window) const {
    auto [a, b] = kiln::stft<30, plain>(x, window);
    auto [c, d] = kiln::stft<13, edge>(x);
    auto [e, f] = kiln::stft<45, odd>(x, kiln::hann_window<45>(x));
    return kiln::outputs(a, b, c, d, e, f);
  }
  /// A dynamic number of samples.
  constexpr auto dynamic(kiln::Tensor<kiln::f32, 4 * T + 19> x) const {
    auto [a, b] = kiln::stft<16, kiln::StftOptions{.hop = 4, .center = false}>(x, kiln::hann_window<16>(x));
    return kiln::outputs(a, b);
  }
  constexpr auto inverse(kiln::Tensor<kiln::f32, B, T, 23> real, kiln::Tensor<kiln::f32, B, T, 23> imaginary,
                         kiln::Tensor<kiln::f32, B, 5, 16> other, kiln::Tensor<kiln::f32, B, 5, 16> turned) const {
    return kiln::outputs(
        kiln::istft<45, kiln::StftOptions{.hop = 9, .center = false}>(real, imaginary),
        kiln::istft<30, kiln::StftOptions{.hop = 6}>(other, turned, kiln::hann_window<30>(other)));
  }
  constexpr auto filters(kiln::Tensor<kiln::f32, T, 65> power) const {
    return kiln::outputs(kiln::mel<20>(power),
                         kiln::mel<7>(power, {.rate = 8000,
                                              .lowest = 100,
                                              .highest = 3800,
                                              .scale = kiln::MelScale::htk,
                                              .has_equal_areas = false}));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("spectra", &Signals::spectra), kiln::entry("dynamic", &Signals::dynamic),
                      kiln::entry("inverse", &Signals::inverse), kiln::entry("filters", &Signals::filters)};
  }
};

KILN_MODEL(ops_signals, Signals)
