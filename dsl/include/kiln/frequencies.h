// SPDX-License-Identifier: Apache-2.0
//
// The frequencies of rotary and sinusoidal positions as constant expressions: powers of a base, their scaling for
// longer contexts (linear, Llama 3, YaRN, LongRoPE), and positions of several axes (M-RoPE, pictures).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln {

namespace detail {

inline constexpr double log_of_2 = 0x1.62e42fefa39efp-1, pi = 0x1.921fb54442d18p+1;

/// Natural logarithm of a positive normal number, by the series of 2 atanh((m - 1) / (m + 1)) for m near 1.
constexpr double log_of(double x) {
  int exponent = 0;
  for (; x > 1.4142135623730951; x /= 2)
    ++exponent;
  for (; x < 0.7071067811865476; x *= 2)
    --exponent;
  const double s = (x - 1) / (x + 1), square = s * s;
  double series = 0;
  for (int power = 23; power > 0; power -= 2)
    series = series * square + 1.0 / power;
  return exponent * log_of_2 + 2 * s * series;
}

/// e^x for |x| below 700, by the series of e^(x / 2^k) around 0.
constexpr double exp_of(double x) {
  const auto halves = static_cast<std::int64_t>(x / log_of_2 + (x < 0 ? -0.5 : 0.5));
  const double rest = x - static_cast<double>(halves) * log_of_2;
  double series = 1;
  for (int n = 17; n > 0; --n)
    series = 1 + series * rest / n;
  for (std::int64_t i = 0; i < halves; ++i)
    series *= 2;
  for (std::int64_t i = 0; i > halves; --i)
    series /= 2;
  return series;
}

constexpr double rounded_down(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole > x ? whole - 1 : whole;
}

/// The share of the way from `from` to `to`, within [0, 1].
constexpr double share_between(double from, double to, double x) {
  const double share = (x - from) / (to - from);
  return share < 0 ? 0 : share > 1 ? 1 : share;
}

} // namespace detail

/// The largest frequency: beyond it, the fraction of an f32 position would not determine the angle.
inline constexpr double largest_frequency = 65536;

/// How the frequencies of rotary positions are scaled for contexts longer than those of pretraining.
struct RotaryScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  bool truncates = true; // yarn: the bounds of the interpolation are whole pairs
  // Doubles come last: clang 22 corrupts members after a double in a template argument.
  double factor = 1;    // of the context's length
  double original = 1;  // context length of pretraining
  double low = 1;       // pairs with fewer rotations in the original context have their frequency divided
  double high = 1;      // pairs with more rotations keep theirs
  double amplitude = 1; // factor of sines and cosines

  constexpr bool operator==(const RotaryScaling &) const = default;
};

/// All frequencies are divided by the factor (Chen et al. 2023, position interpolation).
constexpr RotaryScaling linear_scaling(double factor) {
  return {.kind = RotaryScaling::Kind::linear, .factor = factor};
}

/// Llama 3.1's scaling, which interpolates over rotations in the original context; the arguments are the fields factor,
/// original_max_position_embeddings, low_freq_factor and high_freq_factor of a config.json.
constexpr RotaryScaling llama3_scaling(double factor, double original, double low = 1, double high = 4) {
  return {.kind = RotaryScaling::Kind::llama3, .factor = factor, .original = original, .low = low, .high = high};
}

struct YarnOptions {
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0; // factor of sines and cosines; 0: 0.1 log(factor) + 1
  bool truncates = true;       // the bounds of the interpolation are rounded to whole pairs
};

/// YaRN (Peng et al. 2023, 3.2 and 3.4) in the form of published models, which interpolate over the indices of pairs.
constexpr RotaryScaling yarn_scaling(double factor, double original, const YarnOptions &options = {}) {
  return {.kind = RotaryScaling::Kind::yarn,
          .truncates = options.truncates,
          .factor = factor,
          .original = original,
          .low = options.beta_slow,
          .high = options.beta_fast,
          .amplitude = options.attention_factor > 0 ? options.attention_factor : 0.1 * detail::log_of(factor) + 1};
}

/// LongRoPE (Ding et al. 2024): every pair has its own divisor, from one of two lists.
template <std::size_t Pairs> struct LongRope {
  std::array<double, Pairs> short_factors, long_factors;
  double original;             // context length of pretraining; longer contexts use the long factors
  double attention_factor = 0; // factor of sines and cosines in either case; 0: by the ratio of `longest`, see scaled()
  double longest = 0;          // context length that the model supports (max_position_embeddings)
};

/// What `sinusoidal` and `rotary` do with positions: the angle of pair i is its frequency times the position. With
/// several axes, pair i reads the position along `axes[i]`.
template <std::int64_t Width, int Axes = 1> struct Frequencies {
  static constexpr std::int64_t width = Width;
  static constexpr std::size_t pairs = Width < 2 ? 1 : static_cast<std::size_t>(Width / 2);
  static constexpr int axis_count = Axes;
  std::array<double, pairs> values{}; // radians for each step of the position
  std::array<int, pairs> axes{};
  double amplitude = 1; // factor of sines and cosines

  constexpr Frequencies scaled(const RotaryScaling &scaling) const {
    Frequencies result = *this;
    for (std::size_t i = 0; i < pairs; ++i)
      result.values[i] *= share_kept(scaling, i) + (1 - share_kept(scaling, i)) / scaling.factor;
    result.amplitude *= scaling.amplitude;
    return result;
  }

  /// LongRoPE for contexts of up to `context` positions. The default of the attention factor is
  /// sqrt(1 + log(longest / original) / log(original)).
  constexpr Frequencies scaled(const LongRope<pairs> &rope, double context) const {
    Frequencies result = *this;
    for (std::size_t i = 0; i < pairs; ++i)
      result.values[i] /= context > rope.original ? rope.long_factors[i] : rope.short_factors[i];
    const double ratio = rope.longest / rope.original;
    if (rope.attention_factor > 0)
      result.amplitude *= rope.attention_factor;
    else if (ratio > 1)
      result.amplitude *= detail::exp_of(detail::log_of(1 + detail::log_of(ratio) / detail::log_of(rope.original)) / 2);
    return result;
  }

  /// Multimodal rotary positions (M-RoPE, Wang et al. 2024): the first counts[0] pairs read axis 0, the next counts[1]
  /// axis 1, and so on. Pairs that the counts leave, or that exceed the width, violate `sinusoidal_c5`.
  template <std::size_t N> constexpr Frequencies<Width, static_cast<int>(N)> sections(const int (&counts)[N]) const {
    Frequencies<Width, static_cast<int>(N)> result{.values = values, .axes = {}, .amplitude = amplitude};
    result.axes.fill(-1);
    std::size_t at = 0;
    for (std::size_t axis = 0; axis < N; ++axis)
      for (int i = 0; i < counts[axis]; ++i, ++at)
        if (at < pairs)
          result.axes[at] = static_cast<int>(axis);
    if (at != pairs)
      result.axes.fill(-1);
    return result;
  }

  /// The same with pairs of the axes in turn (0 1 2 0 1 2 ...), while these last; the other pairs read axis 0, as in
  /// Qwen3-VL.
  template <std::size_t N>
  constexpr Frequencies<Width, static_cast<int>(N)> interleaved_sections(const int (&counts)[N]) const {
    Frequencies<Width, static_cast<int>(N)> result{.values = values, .axes = {}, .amplitude = amplitude};
    for (std::size_t i = 0; i < pairs; ++i)
      if (static_cast<std::int64_t>(i / N) < counts[i % N])
        result.axes[i] = static_cast<int>(i % N);
    return result;
  }

private:
  /// Returns the share of a pair's frequency that is not divided by the factor.
  constexpr double share_kept(const RotaryScaling &scaling, std::size_t pair) const {
    const double turns = scaling.original * values[pair] / (2 * detail::pi); // in the original context
    switch (scaling.kind) {
    case RotaryScaling::Kind::none:
      return 1;
    case RotaryScaling::Kind::linear:
      return 0;
    case RotaryScaling::Kind::llama3:
      return detail::share_between(scaling.low, scaling.high, turns);
    case RotaryScaling::Kind::yarn:
      break;
    }
    double first = pair_with_turns(scaling, scaling.high), last = pair_with_turns(scaling, scaling.low);
    if (scaling.truncates) {
      first = detail::rounded_down(first);
      last = -detail::rounded_down(-last);
    }
    first = first < 0 ? 0 : first;
    last = last > static_cast<double>(Width - 1) ? static_cast<double>(Width - 1) : last;
    return 1 - detail::share_between(first, first == last ? last + 0.001 : last, static_cast<double>(pair));
  }

  /// Returns the index, also between pairs, of the frequency that makes so many turns in the original context. Plain
  /// frequencies are a geometric series, whose ratio the first and the last pair have.
  constexpr double pair_with_turns(const RotaryScaling &scaling, double turns) const {
    if (pairs < 2)
      return 0;
    const double ratio = detail::log_of(values[0] / values[pairs - 1]) / static_cast<double>(pairs - 1);
    return detail::log_of(scaling.original * values[0] / (turns * 2 * detail::pi)) / ratio;
  }
};

/// The frequencies of Vaswani et al. (2017) and Su et al. (2021): pair i turns by base^(-2i / Width) a position.
template <std::int64_t Width> constexpr Frequencies<Width> frequencies(double base = 10000) {
  Frequencies<Width> result;
  for (std::size_t i = 0; i < result.pairs; ++i)
    result.values[i] =
        detail::exp_of(-2.0 * static_cast<double>(i) / static_cast<double>(Width) * detail::log_of(base));
  return result;
}

/// Frequencies of the given pairs, in radians for each step of the position.
template <std::size_t Pairs>
constexpr Frequencies<2 * static_cast<std::int64_t>(Pairs)> frequencies(const std::array<double, Pairs> &values) {
  Frequencies<2 * static_cast<std::int64_t>(Pairs)> result;
  result.values = values;
  return result;
}

/// Positions in pictures and videos: each axis has an equal part of the pairs, with `frequencies<Width / Axes>(base)`.
template <std::int64_t Width, int Axes> constexpr Frequencies<Width, Axes> axial_frequencies(double base = 10000) {
  static_assert(Axes >= 1 && Width % (2 * Axes) == 0,
                "kiln: axial_frequencies: wrong width; expected an even part for each axis");
  const auto part = frequencies<Width / Axes>(base);
  Frequencies<Width, Axes> result;
  for (std::size_t i = 0; i < result.pairs; ++i) {
    result.values[i] = part.values[i % part.pairs];
    result.axes[i] = static_cast<int>(i / part.pairs);
  }
  return result;
}

} // namespace kiln
