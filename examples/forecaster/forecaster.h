// SPDX-License-Identifier: Apache-2.0
//
// A forecaster of single series: overlapping patches of values, a Transformer over them, and three quantiles of each of
// the next 24 values. A series is normalised by its own mean and deviation, which are applied to the forecast in
// reverse, and any of its values may be missing.
#pragma once

#include <kiln/dsl.h>

namespace forecaster {

inline constexpr std::int64_t horizon = 24, quantiles = 3, patch = 16, stride = 8;
inline constexpr kiln::Dim B{"series", 1, 64}, P{"patches", 1, 32};
inline constexpr auto length = stride * P + (patch - stride);

using Values = kiln::Tensor<kiln::f32, B, length>;
using Known = kiln::Tensor<kiln::boolean, B, length>; // unknown values may be NaN
using Future = kiln::Tensor<kiln::f32, B, horizon>;

template <int Width, int Heads, int Layers> struct Forecaster : kiln::Model {
  kiln::Conv1d<2, Width, patch, kiln::Conv1dOptions{.stride = stride}> patches{"patches"};
  kiln::Embedding<32, Width> positions{"positions"};
  kiln::Stack<Layers, kiln::EncoderBlock<Width, Heads, 2 * Width>> blocks{"blocks"};
  kiln::LayerNorm<Width> norm{"norm"};
  kiln::Linear<Width, horizon * quantiles> head{"head"};

  /// Returns [B, horizon, quantiles]: the 10th, 50th and 90th percentile, in ascending order.
  constexpr auto forecast(Values values, Known known) const {
    auto series = normalised(values, known);
    auto channels =
        kiln::concat<2>(kiln::reshape<B, length, 1>(series.values), kiln::reshape<B, length, 1>(series.has));
    auto x = patches(channels);
    x = x + positions(kiln::positions<1>(x));
    auto read = norm(blocks(x, kiln::mask(mask_of(series.has))));
    auto raw = kiln::reshape<B, horizon, quantiles>(head(kiln::reshape<B, Width>(kiln::last<1, 1>(read))));
    auto lowest = kiln::slice<2, 0, 1>(raw);
    auto steps = kiln::softplus(kiln::slice<2, 1, quantiles - 1>(raw));
    return kiln::cumsum<2>(kiln::concat<2>(lowest, steps)) * each(series.deviation) + each(series.mean);
  }

  /// Returns the mean pinball loss on the scale of each series (Koenker and Bassett 1978).
  constexpr auto loss(Values values, Known known, Future future) const {
    auto levels = kiln::constant<kiln::f32, quantiles>(values, {0.1, 0.5, 0.9});
    auto above =
        (kiln::reshape<B, horizon, 1>(future) - forecast(values, known)) / each(normalised(values, known).deviation);
    return kiln::mean(kiln::mean(kiln::mean(kiln::maximum(levels * above, (levels - 1) * above))));
  }

private:
  template <class Each, class One> struct Series {
    Each values, has; // both 0 where a value is unknown
    One mean, deviation;
  };
  template <class Each, class One> Series(Each, Each, One, One) -> Series<Each, One>;

  static constexpr auto each(const kiln::tensor auto &number) { return kiln::reshape<B, 1, 1>(number); }

  /// Normalises by mean and deviation of the known values (Kim et al. 2022, without the affine part).
  static constexpr auto normalised(Values values, Known known) {
    auto has = kiln::cast<kiln::f32>(known);
    auto count = kiln::reshape<B, 1>(kiln::maximum(kiln::sum(has), 1));
    auto there = kiln::where(known, values, 0);
    auto mean = kiln::reshape<B, 1>(kiln::sum(there)) / count;
    auto away = (there - mean) * has;
    auto deviation = kiln::sqrt(kiln::reshape<B, 1>(kiln::sum(away * away)) / count + 1e-5);
    return Series{away / deviation, has, mean, deviation};
  }

  /// Masks patches without known values.
  static constexpr auto mask_of(const kiln::tensor auto &has) {
    auto ones = kiln::zeros<kiln::f32, 1, 1, patch>(has) + 1;
    auto counts = kiln::conv1d<kiln::Conv1dOptions{.stride = stride}>(kiln::reshape<B, length, 1>(has), ones);
    return kiln::where(kiln::less(kiln::reshape<B, 1, P>(counts), 0.5), -3e38, kiln::zeros<kiln::f32, B, 1, P>(has));
  }
};

} // namespace forecaster
