// SPDX-License-Identifier: Apache-2.0
//
// Computes log-mel frames of a sound, as Whisper reads them (Radford et al. 2022, 2.2):
//
//   1. a Hann window of 400 samples every 160 samples; the sound is mirrored at both ends
//   2. the power spectrum, by a discrete Fourier transform
//   3. sums with triangular filters that are evenly spaced on a mel scale and have the same area (Slaney 1998)
//   4. log10, clamped to at most 8 below the maximum; (x + 4) / 4
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <numbers>
#include <span>
#include <vector>

namespace log_mel {

inline constexpr std::size_t rate = 16000; // samples per second
inline constexpr std::size_t window = 400, step = 160, bands = window / 2 + 1;

/// Returns the power of `x` at the frequencies 0, 1 / 400, ..., 1 / 2, with 20 transforms of 20 numbers (Cooley, Tukey
/// 1965).
inline std::array<double, bands> power_of(const std::array<double, window> &x) {
  constexpr std::size_t side = 20;
  static const auto roots = [] {
    std::array<std::complex<double>, window> all;
    for (std::size_t i = 0; i < window; ++i)
      all[i] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / window);
    return all;
  }();
  std::array<std::complex<double>, window> parts; // transforms of every 20th number
  for (std::size_t part = 0; part < side; ++part)
    for (std::size_t i = 0; i < side; ++i) {
      std::complex<double> sum = 0;
      for (std::size_t j = 0; j < side; ++j)
        sum += x[side * j + part] * roots[side * i * j % window];
      parts[side * part + i] = sum * roots[part * i];
    }
  std::array<double, bands> power;
  for (std::size_t band = 0; band < bands; ++band) {
    std::complex<double> sum = 0;
    for (std::size_t part = 0; part < side; ++part)
      sum += parts[side * part + band % side] * roots[side * part * (band / side) % window];
    power[band] = std::norm(sum);
  }
  return power;
}

/// Returns the filter weights [bands, bins]. Triangle i begins at the peak of the previous triangle and ends at the
/// peak of the next one. Peaks are evenly spaced on a scale that is linear up to 1000 Hz and logarithmic above.
inline std::vector<double> triangles(std::size_t bins) {
  const double top = 15 + 27 * std::log(rate / 2 / 1000.0) / std::log(6.4);
  auto corner = [&](std::size_t i) {
    const double mel = top * static_cast<double>(i) / static_cast<double>(bins + 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
  };
  std::vector<double> weights(bands * bins);
  for (std::size_t bin = 0; bin < bins; ++bin) {
    const double begin = corner(bin), tip = corner(bin + 1), end = corner(bin + 2);
    for (std::size_t band = 0; band < bands; ++band) {
      const double hertz = static_cast<double>(band * rate) / window,
                   height = std::min((hertz - begin) / (tip - begin), (end - hertz) / (end - tip));
      weights[band * bins + bin] = std::max(0.0, height) * 2 / (end - begin);
    }
  }
  return weights;
}

/// Returns the samples of a frame times the Hann window.
inline std::array<double, window> window_of(std::span<const float> samples, std::size_t frame) {
  static const auto hann = [] {
    std::array<double, window> all;
    for (std::size_t i = 0; i < window; ++i)
      all[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / window);
    return all;
  }();
  std::array<double, window> x;
  const auto last = static_cast<std::ptrdiff_t>(samples.size()) - 1;
  for (std::size_t i = 0; i < window; ++i) {
    const auto place = static_cast<std::ptrdiff_t>(frame * step + i) - static_cast<std::ptrdiff_t>(window / 2);
    const auto mirrored = static_cast<std::size_t>(last - std::abs(last - std::abs(place)));
    x[i] = samples[mirrored] * hann[i];
  }
  return x;
}

/// Returns the frames [bins, samples / 160] of more than 200 samples.
inline std::vector<float> frames(std::span<const float> samples, std::size_t bins) {
  const std::size_t count = samples.size() / step;
  const std::vector<double> weights = triangles(bins);
  std::vector<double> logarithms(bins * count);
  for (std::size_t frame = 0; frame < count; ++frame) {
    const std::array<double, bands> power = power_of(window_of(samples, frame));
    std::vector<double> sums(bins);
    for (std::size_t band = 0; band < bands; ++band)
      for (std::size_t bin = 0; bin < bins; ++bin)
        sums[bin] += weights[band * bins + bin] * power[band];
    for (std::size_t bin = 0; bin < bins; ++bin)
      logarithms[bin * count + frame] = std::log10(std::max(sums[bin], 1e-10));
  }
  const double largest = *std::max_element(logarithms.begin(), logarithms.end());
  std::vector<float> result;
  for (double x : logarithms)
    result.push_back(static_cast<float>((std::max(x, largest - 8) + 4) / 4));
  return result;
}

} // namespace log_mel
