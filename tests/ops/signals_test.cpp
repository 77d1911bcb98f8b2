// SPDX-License-Identifier: Apache-2.0
// Spectra compared with the sums of their definitions in f64, and mel filters with the formula of a triangle.
#include "ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include KILN_OPS_HEADER(ops_signals)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_signals, entry)

namespace kiln::testing {
namespace {

auto &session() {
  static Session<KILN_OPS_HANDLE(ops_signals)> only(KILN_OPS_LIBRARY(ops_signals, OPS_SIGNALS));
  return only;
}

double angle(std::int64_t k, std::int64_t n, std::int64_t size) {
  return 2 * std::numbers::pi * static_cast<double>(k * n % size) / static_cast<double>(size);
}
Array hann(std::int64_t size) {
  return generate({size}, [&](const Index &at) { return 0.5 - 0.5 * std::cos(angle(at[0], 1, size)); });
}
/// The window in the middle of zeros.
double windowAt(const Array &window, std::int64_t n, std::int64_t size) {
  const std::int64_t at = n - (size - window.shape[0]) / 2;
  return at < 0 || at >= window.shape[0] ? 0 : window.at({at});
}
Array ones(std::int64_t size) {
  return generate({size}, [](const Index &) { return 1; });
}

enum class Border { none, reflect, edge };

/// The spectra of x [B, L]: the sum of each frame's samples times cosines, or times the negatives of sines.
Array spectrum(const Array &x, const Array &window, std::int64_t size, std::int64_t hop, Border border, bool isReal) {
  const std::int64_t length = x.shape[1], half = border == Border::none ? 0 : size / 2;
  auto sample = [&](std::int64_t b, std::int64_t at) {
    if (border == Border::edge)
      at = std::clamp<std::int64_t>(at, 0, length - 1);
    else if (at < 0 || at >= length)
      at = at < 0 ? -at : 2 * (length - 1) - at;
    return x.at({b, at});
  };
  return generate({x.shape[0], (length + 2 * half - size) / hop + 1, size / 2 + 1}, [&](const Index &at) {
    double sum = 0;
    for (std::int64_t n = 0; n < size; ++n) {
      const double turn = angle(at[2], n, size);
      sum += windowAt(window, n, size) * sample(at[0], at[1] * hop + n - half) *
             (isReal ? std::cos(turn) : -std::sin(turn));
    }
    return sum;
  });
}

TEST(Signals, Spectra) {
  for (std::int64_t batch : {1, 2, 3}) {
    Array x = random({batch, 70}), window = random({27});
    auto expected = [&](const Array &w, std::int64_t size, std::int64_t hop, Border border, bool isReal) {
      return Expected(spectrum(x, w, size, hop, border, isReal), sumTolerance);
    };
    Expected a = expected(window, 30, 7, Border::none, true), b = expected(window, 30, 7, Border::none, false),
             c = expected(ones(13), 13, 5, Border::edge, true), d = expected(ones(13), 13, 5, Border::edge, false),
             e = expected(hann(45), 45, 9, Border::reflect, true), f = expected(hann(45), 45, 9, Border::reflect, false);
    runAndCompare(session(), ENTRY(spectra), batch, Given(x), Given(window), a, b, c, d, e, f);
  }
}

TEST(Signals, DynamicLength) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array x = random({4 * e.rows + 19}), row = reshaped(x, {1, 4 * e.rows + 19});
    Expected a(spectrum(row, hann(16), 16, 4, Border::none, true), sumTolerance),
        b(spectrum(row, hann(16), 16, 4, Border::none, false), sumTolerance);
    runAndCompare(session(), ENTRY(dynamic), e.rows, Given(x), a, b);
  }
}

/// The frames times the window, added up, over the sum of the squared windows.
Array signal(const Array &real, const Array &imaginary, const Array &window, std::int64_t size, std::int64_t hop,
             std::int64_t cut) {
  const std::int64_t frames = real.shape[1];
  return generate({real.shape[0], (frames - 1) * hop + size - 2 * cut}, [&](const Index &at) {
    double sum = 0, weights = 0;
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const std::int64_t n = at[1] + cut - frame * hop;
      if (n < 0 || n >= size)
        continue;
      double value = 0;
      for (std::int64_t k = 0; k <= size / 2; ++k) {
        const bool isAlone = k == 0 || 2 * k == size;
        const double turn = angle(k, n, size), part = isAlone ? 0 : imaginary.at({at[0], frame, k}) * std::sin(turn);
        value += (isAlone ? 1 : 2) * (real.at({at[0], frame, k}) * std::cos(turn) - part);
      }
      const double factor = windowAt(window, n, size);
      sum += factor * value / static_cast<double>(size);
      weights += factor * factor;
    }
    return sum / weights;
  });
}

TEST(Signals, Inverse) {
  for (const Extents &e : allExtents()) {
    KILN_TRACE_EXTENTS(e);
    Array real = random({e.batch, e.rows, 23}), imaginary = random({e.batch, e.rows, 23}),
          other = random({e.batch, 5, 16}), turned = random({e.batch, 5, 16});
    Expected a(signal(real, imaginary, ones(45), 45, 9, 0), sumTolerance),
        b(signal(other, turned, hann(30), 30, 6, 15), sumTolerance);
    runAndCompare(session(), ENTRY(inverse), e.batch, e.rows, Given(real), Given(imaginary), Given(other),
                  Given(turned), a, b);
  }
}

struct Scale {
  std::function<double(double)> pitch, hertz;
};
Array filtered(const Array &power, std::int64_t count, double rate, double low, double high, const Scale &scale,
               bool hasEqualAreas) {
  const std::int64_t bins = power.shape[1];
  auto corner = [&](std::int64_t i) {
    const double from = scale.pitch(low), to = scale.pitch(high);
    return scale.hertz(from + (to - from) * static_cast<double>(i) / static_cast<double>(count + 1));
  };
  return generate({power.shape[0], count}, [&](const Index &at) {
    const double begin = corner(at[1]), peak = corner(at[1] + 1), end = corner(at[1] + 2);
    double sum = 0;
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      const double hertz = rate / 2 * static_cast<double>(bin) / static_cast<double>(bins - 1);
      sum += power.at({at[0], bin}) *
             std::max(0.0, std::min((hertz - begin) / (peak - begin), (end - hertz) / (end - peak)));
    }
    return hasEqualAreas ? sum * 2 / (end - begin) : sum;
  });
}

TEST(Signals, MelFilters) {
  const Scale slaney{[](double f) { return f < 1000 ? f * 0.015 : 15 + std::log(f / 1000) * 27 / std::log(6.4); },
                     [](double m) { return m < 15 ? m / 0.015 : 1000 * std::pow(6.4, (m - 15) / 27); }};
  const Scale htk{[](double f) { return 2595 * std::log10(1 + f / 700); },
                  [](double m) { return 700 * (std::pow(10, m / 2595) - 1); }};
  for (std::int64_t rows : {1, 2, 5, 16, 37}) {
    SCOPED_TRACE(rows);
    Array power = random({rows, 65}, 0, 4);
    Expected a(filtered(power, 20, 16000, 0, 8000, slaney, true), sumTolerance),
        b(filtered(power, 7, 8000, 100, 3800, htk, false), sumTolerance);
    runAndCompare(session(), ENTRY(filters), rows, Given(power), a, b);
  }
}

} // namespace
} // namespace kiln::testing
