// SPDX-License-Identifier: Apache-2.0
//
// This file is compiled for AVX2 and FMA: it must not define functions that other files of a program define as well.
#include "errors_lanes.h"
#include "lanes.h"

namespace kiln::testing::lanes {
namespace {

using oracle::Lanes;

Lanes larger(Lanes a, Lanes b) { return select(a < b, b, a); }

double largestOf(Lanes lanes) {
  double values[Lanes::count], largest = 0;
  lanes.store(values);
  for (double value : values)
    largest = largest < value ? value : largest;
  return largest;
}

template <std::size_t Function> Error<double> largestErrorsOf(const float *x, const float *y, std::size_t n) {
  constexpr Bound bound = testedFunctions[Function].bound;
  Lanes ulps, absolute;
  for (std::size_t i = 0; i < n; i += Lanes::count) {
    const Lanes expected = std::get<Function>(oracle::expressions)(Lanes::load(x + i));
    const Error<Lanes> error = oracle::errorOf(Lanes::load(y + i), expected, bound);
    ulps = larger(ulps, error.ulps);
    absolute = larger(absolute, error.absolute);
  }
  return {largestOf(ulps), largestOf(absolute)};
}

template <std::size_t Function> void computeOf(const float *x, double *y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += Lanes::count)
    std::get<Function>(oracle::expressions)(Lanes::load(x + i)).store(y + i);
}

using AllFunctions = std::make_index_sequence<std::size(testedFunctions)>;

} // namespace

Error<double> largestErrors(std::size_t function, const float *x, const float *y, std::size_t n) {
  return [=]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr decltype(&largestErrorsOf<0>) loops[] = {largestErrorsOf<I>...};
    return loops[function](x, y, n);
  }(AllFunctions());
}

void compute(std::size_t function, const float *x, double *y, std::size_t n) {
  [=]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr decltype(&computeOf<0>) loops[] = {computeOf<I>...};
    loops[function](x, y, n);
  }(AllFunctions());
}

} // namespace kiln::testing::lanes
