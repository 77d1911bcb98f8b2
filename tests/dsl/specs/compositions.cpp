// SPDX-License-Identifier: Apache-2.0
//
// Compositions of "Coming from PyTorch" in dsl/SPEC.md: functions of PyTorch that have no operation of their own.
#include <kiln/generator.h>

inline constexpr kiln::Dim T{"rows", 1, 16};

struct Compositions : kiln::Model {
  static constexpr kiln::Names inputs{"pairs", "i"};
  kiln::ConvTranspose1d<8, 6, 4, kiln::ConvTranspose1dOptions{.stride = 2, .padding = 1}> up{"up"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 2 * T, 8> pairs, kiln::Tensor<kiln::i32, T> i) const {
    // x = pairs[::2]
    auto x = kiln::slice<1, 0, 8>(kiln::reshape<T, 16>(pairs));
    // x.masked_fill(x > 0, -1)
    auto filled = kiln::where(x > 0, -1, x);
    // x.var(-1, unbiased=False)
    auto off = x - kiln::mean<-1, kiln::keepdim>(x);
    auto variance = kiln::mean(off * off);
    // F.glu(x)
    auto gated = kiln::slice<1, 0, 4>(x) * kiln::sigmoid(kiln::slice<1, 4, 4>(x));
    // torch.stack((x, filled), 1)
    auto stacked = kiln::concat<1>(kiln::reshape<T, 1, 8>(x), kiln::reshape<T, 1, 8>(filled));
    // nn.MaxPool1d(2) of a signal
    auto pooled = kiln::max_pool2d<kiln::Pair(1, 2)>(kiln::reshape<1, 2 * T, 8>(pairs));
    // x.repeat_interleave(2, 0), nn.Upsample(scale_factor=2) of a signal
    auto twice = kiln::reshape<2 * T, 8>(kiln::expand<T, 2, 8>(kiln::reshape<T, 1, 8>(x)));
    // F.pad(x, (0, 0, 2, 1))
    auto padded = kiln::pad<0, 2, 1>(x);
    // Attention with a boolean mask, which is true where a query attends.
    auto place = kiln::positions<0>(x);
    auto is_near = kiln::abs(kiln::reshape<T, 1>(place) - place) < 3;
    auto near = kiln::attention<2>(x, x, x, kiln::mask((kiln::cast<kiln::f32>(is_near) - 1) * 1e30));
    // torch.remainder(i, 3), whose sign is that of the divisor
    auto modulo = kiln::remainder(kiln::remainder(i, 3) + 3, 3);
    return kiln::outputs(filled, variance, gated, stacked, pooled, twice, padded, near, modulo, up(x));
  }
};

KILN_MODEL(compositions, Compositions)
