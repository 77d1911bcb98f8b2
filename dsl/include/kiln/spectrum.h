// SPDX-License-Identifier: Apache-2.0
//
// Short-time Fourier transforms of real signals, their inverse, and mel spectra. A transform of n = n1 * n2 samples is
// two stages of matrix products (Cooley and Tukey 1965): n2 transforms of n1 real samples, and after multiplications by
// twiddle factors transforms of n2 complex numbers. A real signal needs n1 / 2 + 1 of the latter only; the other half
// of the spectrum is their conjugate.
#pragma once

#include <type_traits>
#include <utility>

#include "kiln/frequencies.h"
#include "kiln/patches.h"

namespace kiln {

struct StftOptions {
  int hop = 0;        // samples from one frame to the next; 0: a quarter of a frame
  bool center = true; // frame i is centered at sample i * hop; the signal is padded by half a frame on both sides
  PadMode padding = PadMode::reflect;
};

/// Scales of pitch: linear up to 1000 Hz and logarithmic above (Slaney 1998), or 2595 log10(1 + f / 700) (HTK).
enum class MelScale { slaney, htk };
struct MelOptions {
  double rate = 16000, lowest = 0, highest = 0; // samples per second, hertz, hertz; highest 0: half of the rate
  MelScale scale = MelScale::slaney;
  bool has_equal_areas = true; // the triangles' areas are one hertz; otherwise their heights are 1
};

namespace detail {

/// The cosine of k / n of a turn, n > 0. Symmetries reduce the angle to an eighth of a turn.
constexpr double cosine_of_part(std::int64_t k, std::int64_t n) {
  k = (k % n + n) % n;
  if (2 * k > n)
    k = n - k;
  if (4 * k > n)
    return -cosine_of_part(n - 2 * k, 2 * n);
  const bool is_sine = 8 * k > n;
  const double angle =
      2 * pi * (is_sine ? static_cast<double>(n - 4 * k) / 4 : static_cast<double>(k)) / static_cast<double>(n);
  const int last = is_sine ? 21 : 20; // of the powers of the series
  double series = 1;
  for (int power = last; power > 1; power -= 2)
    series = 1 - series * angle * angle / (power * (power - 1));
  return is_sine ? series * angle : series;
}

/// Cosines and sines of the multiples of a part of a turn.
class Turns {
public:
  explicit constexpr Turns(std::int64_t parts) : parts(parts) {
    for (std::int64_t k = 0; k < parts; ++k) {
      cosines.push_back(cosine_of_part(k, parts));
      sines.push_back(cosine_of_part(4 * k - parts, 4 * parts));
    }
  }
  constexpr double cosine(std::int64_t k) const { return cosines[static_cast<std::size_t>(k % parts)]; }
  constexpr double sine(std::int64_t k) const { return sines[static_cast<std::size_t>(k % parts)]; }

private:
  std::int64_t parts;
  std::vector<double> cosines, sines;
};

/// A transform of `size` real samples. Sample (i, j) is sample columns * i + j, and frequency (k, l) is frequency
/// k + rows * l. The first stage computes the frequencies k of the samples (., j) of each j, times the twiddle factor
/// e^(-2 pi i j k / size); the second one the frequencies l of each k <= rows / 2.
struct RealFourier {
  std::int64_t rows, columns;

  constexpr std::int64_t size() const { return rows * columns; }
  constexpr std::int64_t bins() const { return size() / 2 + 1; }
  constexpr std::int64_t kept() const { return rows / 2 + 1; }
  /// The multiply-adds of a transform.
  constexpr std::int64_t cost() const {
    return size() * 2 * kept() + (columns == 1 ? 0 : kept() * 4 * columns * columns);
  }

  /// The transform of this size with the fewest multiply-adds.
  static constexpr RealFourier best(std::int64_t size) {
    RealFourier best{size, 1};
    for (std::int64_t rows = 1; rows <= size; ++rows)
      if (size % rows == 0)
        if (const RealFourier other{rows, size / rows}; other.cost() < best.cost())
          best = other;
    return best;
  }

  /// The frequency (k, l) that has this bin, or its conjugate.
  struct Place {
    std::int64_t k, l;
    bool is_conjugate;
  };
  constexpr Place place(std::int64_t bin) const {
    if (const std::int64_t k = bin % rows; k < kept())
      return {k, bin / rows, false};
    const std::int64_t mirrored = size() - bin;
    return {mirrored % rows, mirrored / rows, true};
  }
  /// The bin of frequency (k, l), or the one whose conjugate it is.
  constexpr std::int64_t bin(std::int64_t k, std::int64_t l) const {
    const std::int64_t frequency = k + rows * l;
    return frequency < bins() ? frequency : size() - frequency;
  }
  constexpr bool is_conjugate(std::int64_t k, std::int64_t l) const { return k + rows * l >= bins(); }
};

/// The elements of all frames of samples, [..., n] -> [..., frames, columns, rows], as the first stage reads them.
template <RealFourier F, Dim Frames, std::int64_t Hop, tensor X> constexpr auto frames_of(const X &x, Site site) {
  constexpr Shape<3> starts{{Frames, 1, 1}};
  std::vector<double> offsets;
  for (std::int64_t j = 0; j < F.columns; ++j)
    for (std::int64_t i = 0; i < F.rows; ++i)
      offsets.push_back(static_cast<double>(F.columns * i + j));
  auto start = viewed<starts>(mul(arange<Frames>(x, site), static_cast<int>(Hop), site));
  auto offset = constant_of<i32, F.columns, F.rows>(x, std::move(offsets));
  return gather<X::rank - 1>(x, add(start, offset, site), site);
}

/// The window, with as many zeros on both sides as it is shorter than a frame: [rows * columns].
template <std::int64_t Size, tensor W> constexpr auto whole_window(const W &window, Site site) {
  constexpr std::int64_t missing = Size - W::shape[0].offset;
  return pad<0, missing / 2, missing - missing / 2>(window, 0, site);
}

/// The matrix of the first stage, [2 * kept, rows]: frequencies k of samples i, real parts and then imaginary parts.
template <RealFourier F> constexpr auto first_stage(const tensor auto &context) {
  const Turns turns(F.rows);
  std::vector<double> values;
  for (int part = 0; part < 2; ++part)
    for (std::int64_t k = 0; k < F.kept(); ++k)
      for (std::int64_t i = 0; i < F.rows; ++i)
        values.push_back(part == 0 ? turns.cosine(i * k) : -turns.sine(i * k));
  return constant_of<f32, 2 * F.kept(), F.rows>(context, std::move(values));
}
/// The matrix of the last stage of the inverse, [rows, 2 * kept]. A frequency that stands for two has twice the weight.
template <RealFourier F> constexpr auto last_stage(const tensor auto &context) {
  const Turns turns(F.rows);
  std::vector<double> values;
  for (std::int64_t i = 0; i < F.rows; ++i)
    for (int part = 0; part < 2; ++part)
      for (std::int64_t k = 0; k < F.kept(); ++k)
        values.push_back((part == 0 ? turns.cosine(i * k) : -turns.sine(i * k)) * (k == 0 || 2 * k == F.rows ? 1 : 2) /
                         static_cast<double>(F.size()));
  return constant_of<f32, F.rows, 2 * F.kept()>(context, std::move(values));
}
/// The twiddle factors' real parts and the negatives of their imaginary parts, [columns, kept].
template <RealFourier F> constexpr auto twiddles(const tensor auto &context) {
  const Turns turns(F.size());
  std::vector<double> cosines, sines;
  for (std::int64_t j = 0; j < F.columns; ++j)
    for (std::int64_t k = 0; k < F.kept(); ++k) {
      cosines.push_back(turns.cosine(j * k));
      sines.push_back(turns.sine(j * k));
    }
  return std::pair{constant_of<f32, F.columns, F.kept()>(context, std::move(cosines)),
                   constant_of<f32, F.columns, F.kept()>(context, std::move(sines))};
}
/// The matrix of the second stage, [2 * columns, 2 * columns]; its transpose is that of the inverse.
template <RealFourier F> constexpr auto second_stage(const tensor auto &context) {
  const Turns turns(F.columns);
  std::vector<double> values;
  for (int to = 0; to < 2; ++to)
    for (std::int64_t l = 0; l < F.columns; ++l)
      for (int from = 0; from < 2; ++from)
        for (std::int64_t j = 0; j < F.columns; ++j)
          values.push_back(to == from ? turns.cosine(j * l) : to == 0 ? turns.sine(j * l) : -turns.sine(j * l));
  return constant_of<f32, 2 * F.columns, 2 * F.columns>(context, std::move(values));
}

/// Real and imaginary parts of all bins, from the frequencies [..., kept * 2 * columns] of the second stage.
template <RealFourier F, tensor X> constexpr auto bins_of(const X &x, Site site) {
  auto part = [&](std::int64_t which) {
    std::vector<double> from;
    for (std::int64_t bin = 0; bin < F.bins(); ++bin) {
      const RealFourier::Place place = F.place(bin);
      from.push_back(static_cast<double>((place.k * 2 + which) * F.columns + place.l));
    }
    return gather<X::rank - 1>(x, constant_of<i32, F.bins()>(x, std::move(from)), site);
  };
  std::vector<double> signs;
  for (std::int64_t bin = 0; bin < F.bins(); ++bin)
    signs.push_back(F.place(bin).is_conjugate ? -1 : 1);
  return std::pair{part(0), mul(part(1), constant_of<f32, F.bins()>(x, std::move(signs)), site)};
}
/// The frequencies [..., kept * 2 * columns] that the inverse reads, from bins [..., 2 * bins].
template <RealFourier F, tensor X> constexpr auto frequencies_of(const X &x, Site site) {
  constexpr std::int64_t count = F.kept() * 2 * F.columns;
  std::vector<double> from, signs;
  for (std::int64_t k = 0; k < F.kept(); ++k)
    for (std::int64_t part = 0; part < 2; ++part)
      for (std::int64_t l = 0; l < F.columns; ++l) {
        from.push_back(static_cast<double>(part * F.bins() + F.bin(k, l)));
        signs.push_back(part == 1 && F.is_conjugate(k, l) ? -1 : 1);
      }
  return mul(gather<X::rank - 1>(x, constant_of<i32, count>(x, std::move(from)), site),
             constant_of<f32, count>(x, std::move(signs)), site);
}

/// Exchanges the last two axes.
template <tensor X> constexpr auto turned(const X &x, Site site) { return transposed_from<X::rank - 2, 1, 0>(x, site); }

/// The spectra of frames [..., columns, rows]: two tensors [..., bins].
template <RealFourier F, tensor X> constexpr auto transformed(const X &frames, Site site) {
  auto parts = linear(frames, first_stage<F>(frames), site); // [..., columns, 2 * kept]
  auto real = slice<-1, 0, F.kept()>(parts, site), imaginary = slice<-1, F.kept(), F.kept()>(parts, site);
  constexpr auto flat = appended(leading<2>(X::shape), F.kept() * 2 * F.columns);
  if constexpr (F.columns == 1) {
    return bins_of<F>(viewed<flat>(concat<-1>(turned(real, site), turned(imaginary, site))), site);
  } else {
    auto [cosines, sines] = twiddles<F>(frames);
    auto ahead = add(mul(real, cosines, site), mul(imaginary, sines, site), site);
    auto aside = sub(mul(imaginary, cosines, site), mul(real, sines, site), site);
    auto lines = concat<-1>(turned(ahead, site), turned(aside, site)); // [..., kept, 2 * columns]
    return bins_of<F>(viewed<flat>(linear(lines, second_stage<F>(lines), site)), site);
  }
}
/// The inverse of transformed: frames [..., size].
template <RealFourier F, tensor X> constexpr auto transformed_back(const X &bins, Site site) {
  constexpr auto lines = appended(appended(leading<1>(X::shape), F.kept()), 2 * F.columns);
  constexpr auto whole = appended(leading<1>(X::shape), F.size());
  auto frequencies = viewed<lines>(frequencies_of<F>(bins, site));
  auto parts = [&] {
    auto real = [&](const auto &of) { return turned(slice<-1, 0, F.columns>(of, site), site); };
    auto imaginary = [&](const auto &of) { return turned(slice<-1, F.columns, F.columns>(of, site), site); };
    if constexpr (F.columns == 1) {
      return concat<-1>(real(frequencies), imaginary(frequencies));
    } else {
      auto stage = linear<WeightOrder::in_out>(frequencies, second_stage<F>(frequencies), site);
      auto ahead = real(stage), aside = imaginary(stage); // [..., columns, kept]
      auto [cosines, sines] = twiddles<F>(bins);
      return concat<-1>(sub(mul(ahead, cosines, site), mul(aside, sines, site), site),
                        add(mul(ahead, sines, site), mul(aside, cosines, site), site));
    }
  }();
  auto samples = linear(parts, last_stage<F>(parts), site); // [..., columns, rows]
  return viewed<whole>(turned(samples, site));
}

/// Adds up frames [..., frames, size] that start `Hop` samples apart: [..., (frames + ceil(size / hop) - 1) * hop].
template <std::int64_t Hop, tensor X> constexpr auto overlapped(const X &frames, Site site) {
  constexpr std::int64_t size = last(X::shape).offset, count = (size + Hop - 1) / Hop;
  constexpr int axis = X::rank - 2;
  auto whole = pad<-1, 0, count * Hop - size>(frames, 0, site);
  auto sum = [&]<std::int64_t I>(auto self, std::integral_constant<std::int64_t, I>) {
    auto part = pad<axis, I, count - 1 - I>(slice<-1, I * Hop, Hop>(whole, site), 0, site);
    if constexpr (I + 1 == count)
      return part;
    else
      return add(part, self(self, std::integral_constant<std::int64_t, I + 1>()), site);
  };
  auto blocks = sum(sum, std::integral_constant<std::int64_t, 0>());
  return viewed<appended(leading<2>(X::shape), (X::shape[axis] + Dim(count - 1)) * Dim(Hop))>(blocks);
}

constexpr std::int64_t hop_of(std::int64_t size, const StftOptions &options) {
  return options.hop == 0 ? size / 4 : options.hop;
}
/// Whether a frame may have this window: f32 [w] of at most `Size` elements, or null.
template <std::int64_t Size, class W> constexpr bool is_frame_window() {
  if constexpr (std::is_same_v<W, std::nullptr_t>)
    return true;
  else if constexpr (W::rank != 1)
    return false;
  else
    return W::element == f32 && W::shape[0].fixed() && W::shape[0].offset <= Size;
}
template <std::int64_t Size> constexpr bool is_frame(std::int64_t hop) {
  return Size >= 2 && Size <= 65536 && hop >= 1 && hop <= 65536;
}
template <std::int64_t Size> constexpr Text frame_text(std::int64_t hop) {
  return Text().put(Size).put(" samples, ").put(hop).put(" apart");
}

/// The spectra of a padded signal. The window is a tensor or null.
template <std::int64_t Size, std::int64_t Hop, tensor X, class W>
constexpr auto spectra(const X &x, const W &window, Site site) {
  constexpr RealFourier transform = RealFourier::best(Size);
  constexpr Dim frames = window_count(last(X::shape), static_cast<int>(Size), Hop, 0, 1);
  auto taken = frames_of<transform, frames, Hop>(x, site);
  if constexpr (std::is_same_v<W, std::nullptr_t>) {
    return transformed<transform>(taken, site);
  } else {
    constexpr Shape<2> square{{transform.rows, transform.columns}};
    auto factors = turned(viewed<square>(whole_window<Size>(window, site)), site);
    return transformed<transform>(mul(taken, factors, site), site);
  }
}

template <std::int64_t Size, StftOptions Options, tensor X, class W>
constexpr auto stft(const X &x, const W &window, Site site) {
  x.tracer->at(site);
  constexpr std::int64_t hop = hop_of(Size, Options);
  if constexpr (X::rank < 1 || X::rank > 4 || X::element != f32) {
    x.tracer->fail(rules::stft_c1, typed(x).data());
    return std::pair{x, x};
  } else if constexpr (!is_frame<Size>(hop)) {
    x.tracer->fail(rules::stft_c2, frame_text<Size>(hop).data());
    return std::pair{x, x};
  } else if constexpr (!is_frame_window<Size, W>()) {
    x.tracer->fail(rules::stft_c3, typed(window).data(), Text().put("f32 of at most ").put(Size).data());
    return std::pair{x, x};
  } else {
    constexpr int half = Options.center ? static_cast<int>(Size / 2) : 0;
    constexpr Dim samples = last(X::shape);
    if constexpr (half > most_padding(Options.padding, samples)) {
      return std::pair{pad<-1, half, half, Options.padding>(x, site), x}; // a violation of pad_c2
    } else if constexpr (!is_strided(samples, hop) ||
                         window_count(samples, static_cast<int>(Size), hop, half, 1).min() < 1) {
      x.tracer->fail(rules::stft_c4, typed(x).data(), frame_text<Size>(hop).data());
      return std::pair{x, x};
    } else {
      return spectra<Size, hop>(pad<-1, half, half, Options.padding>(x, site), window, site);
    }
  }
}

/// One over the sum of the squared windows at each sample of `Frames` frames, [samples].
template <std::int64_t Size, std::int64_t Hop, Dim Frames, class W>
constexpr auto weights_of_samples(const tensor auto &context, const W &window, Site site) {
  constexpr Shape<2> all{{Frames, Size}};
  auto squares = [&] {
    if constexpr (std::is_same_v<W, std::nullptr_t>) {
      return filled<f32, all>(context.tracer, 1);
    } else {
      auto whole = whole_window<Size>(window, site);
      return repeated<all>(mul(whole, whole, site));
    }
  }();
  return div(1, maximum(overlapped<Hop>(squares, site), 1e-11, site), site);
}

template <std::int64_t Size, StftOptions Options, tensor X, tensor Y, class W>
constexpr auto istft(const X &real, const Y &imaginary, const W &window, Site site) {
  real.tracer->at(site);
  constexpr std::int64_t hop = hop_of(Size, Options);
  constexpr bool fits =
      X::rank >= 2 && X::rank <= 5 && X::element == f32 && Y::element == f32 && same_shape(X::shape, Y::shape);
  if constexpr (!is_frame<Size>(hop)) {
    real.tracer->fail(rules::stft_c2, frame_text<Size>(hop).data());
    return real;
  } else if constexpr (!is_frame_window<Size, W>()) {
    real.tracer->fail(rules::stft_c3, typed(window).data(), Text().put("f32 of at most ").put(Size).data());
    return real;
  } else if constexpr (!fits || !(last(X::shape) == Dim(Size / 2 + 1))) {
    real.tracer->fail(rules::istft_c1, typed(real, imaginary).data(), Text().put(Size / 2 + 1).put(" bins").data());
    return real;
  } else {
    constexpr Dim count = last(X::shape, 2);
    constexpr std::int64_t start = Options.center ? Size / 2 : 0;
    constexpr Dim samples = count * Dim(hop) + Dim(Size - hop - 2 * start);
    if constexpr (samples.min() < 1) {
      real.tracer->fail(rules::istft_c2, typed(real).data());
      return real;
    } else {
      constexpr RealFourier transform = RealFourier::best(Size);
      auto frames = transformed_back<transform>(concat<-1>(real, imaginary), site);
      auto weighted = [&] {
        if constexpr (std::is_same_v<W, std::nullptr_t>)
          return frames;
        else
          return mul(frames, whole_window<Size>(window, site), site);
      }();
      auto weights = weights_of_samples<Size, hop, count>(real, window, site);
      return mul(slice<-1, start, samples>(overlapped<hop>(weighted, site), site),
                 slice<0, start, samples>(weights, site), site);
    }
  }
}

/// Pitch of a frequency in hertz, and its inverse.
constexpr double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::htk)
    return 1127 * log_of(1 + hertz / 700);
  return hertz < 1000 ? hertz * 3 / 200 : 15 + 27 * log_of(hertz / 1000) / log_of(6.4);
}
constexpr double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk)
    return 700 * (exp_of(mel / 1127) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * exp_of((mel - 15) * log_of(6.4) / 27);
}

/// Triangular filters [count, bins]: each begins at the peak of the previous one and ends at the peak of the next one.
constexpr std::vector<double> mel_filters(std::int64_t count, std::int64_t bins, const MelOptions &options) {
  const double low = mel_of(options.lowest, options.scale), high = mel_of(options.highest, options.scale);
  auto corner = [&](std::int64_t i) {
    return hertz_of(low + (high - low) * static_cast<double>(i) / static_cast<double>(count + 1), options.scale);
  };
  const double step = options.rate / static_cast<double>(2 * (bins - 1)); // hertz from one bin to the next
  std::vector<double> filters(static_cast<std::size_t>(count * bins), 0.0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double begin = corner(i), peak = corner(i + 1), end = corner(i + 2);
    const double height = options.has_equal_areas ? 2 / (end - begin) : 1;
    for (auto bin = static_cast<std::int64_t>(begin / step); bin < bins && static_cast<double>(bin) * step < end;
         ++bin) {
      const double hertz = static_cast<double>(bin) * step;
      const double rising = (hertz - begin) / (peak - begin), falling = (end - hertz) / (end - peak);
      const double share = rising < falling ? rising : falling;
      filters[static_cast<std::size_t>(i * bins + bin)] = share > 0 ? share * height : 0;
    }
  }
  return filters;
}

} // namespace detail

/// The short-time Fourier transform of real signals [..., samples]: the real and the imaginary parts [..., frames, Size
/// / 2 + 1] of frames of `Size` samples (torch.stft). The window [w] is in the middle of a frame.
template <std::int64_t Size, StftOptions Options = StftOptions{}, tensor X, tensor W>
constexpr auto stft(const X &x, const W &window, Site site = Site::here()) {
  return detail::stft<Size, Options>(x, window, site);
}
template <std::int64_t Size, StftOptions Options = StftOptions{}, tensor X>
constexpr auto stft(const X &x, Site site = Site::here()) {
  return detail::stft<Size, Options>(x, nullptr, site);
}

/// The signals [..., samples] with these spectra [..., frames, Size / 2 + 1] (torch.istft).
template <std::int64_t Size, StftOptions Options = StftOptions{}, tensor X, tensor Y, tensor W>
constexpr auto istft(const X &real, const Y &imaginary, const W &window, Site site = Site::here()) {
  return detail::istft<Size, Options>(real, imaginary, window, site);
}
template <std::int64_t Size, StftOptions Options = StftOptions{}, tensor X, tensor Y>
constexpr auto istft(const X &real, const Y &imaginary, Site site = Site::here()) {
  return detail::istft<Size, Options>(real, imaginary, nullptr, site);
}

/// The periodic Hann window, f32 [Size]; `context` is any tensor of the trace.
template <std::int64_t Size> constexpr auto hann_window(const tensor auto &context, Site site = Site::here()) {
  return constant<f32, Size>(context, [](std::int64_t i) { return 0.5 - 0.5 * detail::cosine_of_part(i, Size); }, site);
}

/// Sums of a power spectrum [..., bins] with `Count` triangular filters: [..., Count].
template <std::int64_t Count, tensor X>
constexpr auto mel(const X &power, const MelOptions &options = {}, Site site = Site::here()) {
  power.tracer->at(site);
  MelOptions given = options;
  if (given.highest == 0)
    given.highest = given.rate / 2;
  constexpr bool fits =
      X::rank >= 1 && X::element == f32 && detail::last(X::shape).fixed() && detail::last(X::shape).offset >= 2;
  if constexpr (!fits || Count < 1) {
    power.tracer->fail(rules::mel_c1, detail::typed(power).data());
    return power;
  } else {
    constexpr std::int64_t bins = detail::last(X::shape).offset;
    if (!(0 <= given.lowest && given.lowest < given.highest && given.highest <= given.rate / 2)) {
      power.tracer->fail(rules::mel_c2, given.lowest, given.highest);
      given = {.rate = 2, .highest = 1};
    }
    return linear(power, detail::constant_of<f32, Count, bins>(power, detail::mel_filters(Count, bins, given)), site);
  }
}

} // namespace kiln
