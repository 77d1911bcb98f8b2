// SPDX-License-Identifier: Apache-2.0
// Composite operations that move elements: axes of one element, padding, shifts, elements by index, sorting.
#include "dims.h"

struct Moving : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, T, 12>;
  using I = kiln::Tensor<kiln::i32, B, T>;
  using Longer = kiln::Tensor<kiln::f32, B, T + kiln::Dim(4), 6>;

  constexpr auto axes(X x) const {
    return kiln::outputs(kiln::unsqueeze<0>(x), kiln::unsqueeze<-1>(x), kiln::unsqueeze<2>(x),
                         kiln::squeeze<-1>(kiln::last<-1, 1>(x)), kiln::sum<1, kiln::keepdim>(x),
                         kiln::max<0, kiln::keepdim>(x), kiln::argmax<-1, kiln::keepdim>(x),
                         x - kiln::mean<-1, kiln::keepdim>(x));
  }
  constexpr auto one_hot(I i, X x) const {
    return kiln::outputs(kiln::one_hot<7>(i), kiln::one_hot<5, kiln::i32>(i),
                         kiln::where(kiln::one_hot<12, kiln::boolean>(i), x, -1));
  }
  /// A dynamic axis of at least 5 elements, and a static one of 6.
  constexpr auto pads(Longer x, I n) const {
    using kiln::PadMode;
    return kiln::outputs(kiln::pad<1, 4, 3, PadMode::reflect>(x), kiln::pad<1, 1, 0, PadMode::reflect>(x),
                         kiln::pad<-1, 5, 5, PadMode::reflect>(x), kiln::pad<1, 3, 7, PadMode::edge>(x),
                         kiln::pad<2, 0, 2, PadMode::edge>(x), kiln::pad<1, 5, 2, PadMode::wrap>(x),
                         kiln::pad<2, 0, 6, PadMode::wrap>(x), kiln::pad<1, 2, 1, PadMode::edge>(n),
                         kiln::pad<2, 0, 0, PadMode::wrap>(x));
  }
  /// Static axes, dynamic ones that are longer than the shift, and others.
  constexpr auto rolls(Longer x, I n) const {
    return kiln::outputs(kiln::roll<2, 5>(x), kiln::roll<-1, -13>(x), kiln::roll<1, 3>(x), kiln::roll<1, -4>(x),
                         kiln::roll<1, 5>(x), kiln::roll<1, -29>(x), kiln::roll<0, 2>(x), kiln::roll<1, 1>(n),
                         kiln::roll<2, 12>(x), kiln::roll<1, 0>(x));
  }
  constexpr auto takes(X x, kiln::Tensor<kiln::i32, B, S, 12> middle, kiln::Tensor<kiln::i32, B, T, 5> last,
                       kiln::Tensor<kiln::i32, 2, T, 12> first, I n, Longer longer,
                       kiln::Tensor<kiln::i32, B, S, 6> places) const {
    auto is_positive = kiln::take_along_axis<1>(longer > 0, places); // B * (T + 4) is no dimension
    return kiln::outputs(kiln::take_along_axis<1>(x, middle), kiln::take_along_axis(x, last),
                         kiln::take_along_axis<0>(x, first), kiln::take_along_axis<1>(n, n),
                         kiln::take_along_axis<1>(longer, places), kiln::cast<kiln::i32>(is_positive));
  }
  constexpr auto adds(X x, kiln::Tensor<kiln::i32, S> rows, kiln::Tensor<kiln::f32, B, S, 12> source,
                      kiln::Tensor<kiln::i32, B, T, 5> columns, kiln::Tensor<kiln::f32, B, T, 5> elements, I n) const {
    return kiln::outputs(kiln::index_add<1>(x, rows, source), kiln::scatter_add(x, columns, elements),
                         kiln::index_add(kiln::zeros<kiln::i32, 7, T>(n), kiln::positions<0>(n), n),
                         kiln::scatter_add<1>(n, n, n));
  }
  constexpr auto sorts(X x, kiln::Tensor<kiln::i32, T, 7> n) const {
    constexpr auto descending = kiln::SortOrder::descending;
    auto [rows, row_places] = kiln::sort(x);
    auto [columns, column_places] = kiln::sort<1, descending>(x);
    auto [whole, whole_places] = kiln::sort<0>(n);
    return kiln::outputs(rows, row_places, columns, column_places, whole, whole_places,
                         kiln::argsort<-1, descending>(n));
  }
  /// Axes of many elements, also in a loop.
  constexpr auto long_sorts(kiln::Tensor<kiln::f32, T, 1500> x, kiln::Tensor<kiln::i32, 1500> n) const {
    auto [values, places] = kiln::topk<40>(x);
    auto [none, of_rows] = kiln::scan(std::tuple<>(), std::tuple{x}, [](auto, auto here) {
      return std::pair{std::tuple<>(), kiln::argsort<0, kiln::SortOrder::ascending, 7>(std::get<0>(here))};
    });
    auto counts = kiln::index_add(kiln::zeros<kiln::i32, 1500>(n), n, kiln::zeros<kiln::i32, 1500>(n) + 1);
    return kiln::outputs(kiln::argsort(x), values, places, of_rows, counts);
  }
  /// Eight axes, the most that there are.
  constexpr auto ranks(kiln::Tensor<kiln::f32, 2, B, 1, 3, T, 2, 1, 5> x,
                       kiln::Tensor<kiln::f32, 3, 1, 2, 1, 5> y) const {
    return kiln::outputs(kiln::transpose<7, 4, 0, 2, 6, 1, 5, 3>(x), x + y, kiln::sum<4>(x), kiln::max<0>(x),
                         kiln::slice<5, 1, 1>(kiln::concat<2>(x, x * 2)), kiln::argsort<3>(x),
                         kiln::gather<7>(x, kiln::constant<kiln::i32, 2>(x, {4, 1})));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("axes", &Moving::axes),   kiln::entry("one_hot", &Moving::one_hot),
                      kiln::entry("pads", &Moving::pads),   kiln::entry("rolls", &Moving::rolls),
                      kiln::entry("takes", &Moving::takes), kiln::entry("adds", &Moving::adds),
                      kiln::entry("sorts", &Moving::sorts), kiln::entry("long_sorts", &Moving::long_sorts),
                      kiln::entry("ranks", &Moving::ranks)};
  }
};

KILN_MODEL(ops_moving, Moving)
