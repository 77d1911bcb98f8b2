// SPDX-License-Identifier: Apache-2.0
// Operations that move elements: every axis, every permutation of three, dynamic dimensions concatenated and sliced.
#include "dims.h"
#include "kiln/windows.h"

struct Movement : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, T, 12>;
  kiln::Embedding<29, 11> table{"table"};
  kiln::Embedding<C.max(), 11> places{"places"};

  constexpr auto reshape(X x) const {
    return kiln::outputs(kiln::reshape<B * T, 12>(x), kiln::reshape<B, T, 3, 4>(x), kiln::reshape<B, T * 12>(x),
                         kiln::reshape<B * T * 12>(x) * 2.0);
  }
  constexpr auto transpose(X x) const {
    return kiln::outputs(kiln::transpose<0, 1, 2>(x), kiln::transpose<0, 2, 1>(x), kiln::transpose<1, 0, 2>(x),
                         kiln::transpose<1, 2, 0>(x), kiln::transpose<2, 0, 1>(x), kiln::transpose<2, 1, 0>(x));
  }
  constexpr auto heads(X x) const { return kiln::transpose<0, 2, 1, 3>(kiln::reshape<B, T, 3, 4>(x)); }
  constexpr auto concat(X x, kiln::Tensor<kiln::f32, 2, T, 12> pair, kiln::Tensor<kiln::f32, B, 5, 12> five,
                        kiln::Tensor<kiln::f32, B, T, 7> seven) const {
    return kiln::outputs(kiln::concat<0>(x, pair), kiln::concat<1>(five, x), kiln::concat<-1>(x, seven, x),
                         kiln::concat<1>(x, x));
  }
  /// Two dynamic dimensions along one axis: joined, taken apart, and as rows.
  constexpr auto joined(X x, kiln::Tensor<kiln::f32, B, S, 12> y) const {
    auto both = kiln::concat<1>(y, x) * 2.0;
    auto rows = kiln::reshape<B * S + B * T, 12>(both);
    return kiln::outputs(both, kiln::slice<1, 0, S>(both), kiln::last<1, T>(both), kiln::concat<0>(rows, rows),
                         kiln::transpose<1, 0, 2>(both), kiln::reshape<B, S + T, 2, 6>(rows),
                         kiln::slice<1, 1, S + T - 1>(both), kiln::concat<1>(x, y, x), kiln::positions<1>(both));
  }
  constexpr auto slice(X x, kiln::Tensor<kiln::f32, T + kiln::Dim(4), 12> longer,
                       kiln::Tensor<kiln::f32, 3, 5, 12> fixed) const {
    return kiln::outputs(kiln::slice<0, 0, 1>(x), kiln::slice<2, 5, 7>(x), kiln::slice<0, 3, T>(longer),
                         kiln::slice<1, 0, 1>(x), kiln::slice<0, 1, 2>(fixed), kiln::slice<1, 2, 3>(fixed));
  }
  constexpr auto last(X x, kiln::Tensor<kiln::f32, C, 12> longer, kiln::Tensor<kiln::i32, T> tokens) const {
    return kiln::outputs(kiln::last<1, 1>(x), kiln::last<-1, 5>(x), kiln::last<0, T>(longer),
                         kiln::last<0, 1>(kiln::last<0, T>(longer)), kiln::positions_in<C>(tokens),
                         table(tokens) + places(kiln::positions_in<C>(tokens)));
  }
  constexpr auto windows(kiln::Tensor<kiln::f32, B, 4, 6, 5> x) const {
    auto cut = kiln::to_windows<2>(x);
    return kiln::outputs(cut, kiln::from_windows<2, 4, 6>(cut), kiln::roll<1, 3>(x), kiln::roll<-2, -2>(x),
                         kiln::shift_mask<2, 1, 4, 6>(x));
  }
  constexpr auto gather(kiln::Tensor<kiln::f32, 6, 5, 9> x, kiln::Tensor<kiln::i32, S> one,
                        kiln::Tensor<kiln::i32, T, 2> two) const {
    return kiln::outputs(kiln::gather<0>(x, one), kiln::gather<1>(x, one), kiln::gather<2>(x, one),
                         kiln::gather<1>(x, two));
  }
  /// Rows along a dynamic dimension, with indices from an input.
  constexpr auto pick(kiln::Tensor<kiln::f32, T, 9> x, kiln::Tensor<kiln::i32, S> rows) const {
    return kiln::gather<0>(x, rows);
  }
  constexpr auto integers(kiln::Tensor<kiln::i32, T, 6> x) const {
    return kiln::outputs(kiln::transpose<1, 0>(x), kiln::slice<1, 2, 3>(x), kiln::concat<1>(x, x),
                         kiln::reshape<T * 6>(x) + 1);
  }
  constexpr auto embedding(kiln::Tensor<kiln::i32, B, T> tokens) const {
    return kiln::outputs(table(tokens), table(tokens) + places(kiln::positions(tokens)), kiln::positions<0>(tokens),
                         kiln::positions(tokens));
  }
  constexpr auto sinusoidal(kiln::Tensor<kiln::f32, T, 14> x) const {
    auto encoding = kiln::sinusoidal<14>(kiln::positions<0>(x));
    return kiln::outputs(encoding, x + encoding, kiln::sinusoidal<14>(kiln::positions<0>(x), 500.0));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("reshape", &Movement::reshape),
                      kiln::entry("transpose", &Movement::transpose),
                      kiln::entry("heads", &Movement::heads),
                      kiln::entry("concat", &Movement::concat),
                      kiln::entry("joined", &Movement::joined),
                      kiln::entry("slice", &Movement::slice),
                      kiln::entry("last", &Movement::last),
                      kiln::entry("windows", &Movement::windows),
                      kiln::entry("gather", &Movement::gather),
                      kiln::entry("pick", &Movement::pick),
                      kiln::entry("integers", &Movement::integers),
                      kiln::entry("embedding", &Movement::embedding),
                      kiln::entry("sinusoidal", &Movement::sinusoidal)};
  }
};

KILN_MODEL(ops_movement, Movement)
