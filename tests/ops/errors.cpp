// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include "errors_lanes.h"
#include "ops.h"

#include <algorithm>
#include <array>

namespace kiln::testing {
namespace {

/// The functions of testedFunctions as libm computes them.
constexpr auto functionsInF64 = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{+[](double x) { return std::get<I>(oracle::expressions)(x); }...};
}(std::make_index_sequence<std::size(testedFunctions)>());

bool hasLanes() {
#ifdef KILN_TEST_LIBMVEC
  static const bool result = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return result;
#else
  return false;
#endif
}

/// Whether libmvec is available and finds that errors are far below the worst: then libm would not find a worse one.
bool areBetter([[maybe_unused]] std::size_t function, [[maybe_unused]] std::span<const float> x,
               [[maybe_unused]] std::span<const float> y, [[maybe_unused]] const Worst &worst) {
#ifdef KILN_TEST_LIBMVEC
  constexpr double nearly = 1 - 1e-6;
  if (hasLanes() && x.size() % 4 == 0) {
    const Error<double> error = lanes::largestErrors(function, x.data(), y.data(), x.size());
    return error.ulps <= nearly * worst.ulps && error.absolute <= nearly * worst.absolute;
  }
#endif
  return false;
}

} // namespace

void Worst::include(const Error<double> &error, double x, double y) {
  absolute = std::max(absolute, error.absolute);
  if (error.ulps > ulps) {
    ulps = error.ulps;
    at = x;
    value = y;
  }
}

void Worst::include(const Worst &other) { include({other.ulps, other.absolute}, other.at, other.value); }

double computeInF64(std::size_t function, double x) { return functionsInF64[function](x); }

void includeErrors(std::size_t function, std::span<const float> x, std::span<const float> y, Worst &worst) {
  constexpr std::size_t block = 256;
  const Bound bound = testedFunctions[function].bound;
  for (; !x.empty(); x = x.subspan(std::min(block, x.size())), y = y.subspan(std::min(block, y.size()))) {
    const std::size_t n = std::min(block, x.size());
    if (!areBetter(function, x.first(n), y.first(n), worst))
      for (std::size_t i = 0; i < n; ++i)
        worst.include(oracle::errorOf<double>(y[i], computeInF64(function, x[i]), bound), x[i], y[i]);
  }
}

std::vector<double> computeInLanes(std::size_t function, std::span<const float> x) {
  std::vector<double> y(hasLanes() ? x.size() : 0);
#ifdef KILN_TEST_LIBMVEC
  if (hasLanes())
    lanes::compute(function, x.data(), y.data(), x.size());
#endif
  return y;
}

double worse(double a, double b) { return b <= a || std::isnan(a) ? a : b; }

std::vector<float> sampleFloats(std::uint64_t distance) {
  std::vector<float> numbers;
  for (std::uint64_t bits = seed() % distance; bits < std::uint64_t{1} << 32; bits += distance)
    numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return numbers;
}

void writeFloats(std::uint32_t firstBits, std::span<float> to) {
  for (float &each : to)
    each = std::bit_cast<float>(firstBits++);
}

std::vector<float> randomRows(std::size_t count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> rows(count);
  for (float &value : rows)
    value = uniform(generator());
  return rows;
}

double angleError(std::span<const std::int32_t> positions, std::span<const float> actual, std::size_t width,
                  double base) {
  double worst = 0;
  for (std::size_t pair = 0; pair < width; pair += 2) {
    const double divisor = std::pow(base, static_cast<double>(pair) / static_cast<double>(width));
    for (std::size_t t = 0; t < positions.size(); ++t) {
      const double angle = positions[t] / divisor;
      worst = worse(worst, std::fabs(actual[t * width + pair] - std::sin(angle)));
      worst = worse(worst, std::fabs(actual[t * width + pair + 1] - std::cos(angle)));
    }
  }
  return worst;
}

double rotationError(std::span<const std::int32_t> positions, std::span<const float> rows,
                     std::span<const float> rotated, std::size_t depth, double base) {
  const std::size_t half = depth / 2, width = rows.size() / positions.size();
  double worst = 0;
  for (std::size_t i = 0; i < half; ++i) {
    const double divisor = std::pow(base, static_cast<double>(i) / static_cast<double>(half));
    for (std::size_t t = 0; t < positions.size(); ++t) {
      const double angle = positions[t] / divisor, sine = std::sin(angle), cosine = std::cos(angle);
      for (std::size_t first = t * width + i; first < (t + 1) * width; first += depth) {
        const double a = rows[first], b = rows[first + half];
        worst = worse(worst, std::fabs(rotated[first] - (a * cosine - b * sine)));
        worst = worse(worst, std::fabs(rotated[first + half] - (b * cosine + a * sine)));
      }
    }
  }
  return worst;
}

} // namespace kiln::testing
