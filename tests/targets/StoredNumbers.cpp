// SPDX-License-Identifier: Apache-2.0
#include "StoredNumbers.h"

#include <algorithm>
#include <cmath>

namespace kiln::testing {

int64_t groupOf(const std::string &storage) {
  const size_t at = storage.find('=');
  return at == std::string::npos ? 0 : std::stoll(storage.substr(at + 1));
}

int64_t wholeOf(const std::string &storage) {
  return storage.starts_with("ui4") || storage.starts_with("i6") ? 256 : std::max<int64_t>(groupOf(storage), 1);
}

/// Returns integers times a power of two for each group of each output: -8 to 7 of either sign, including -8, or, with
/// a zero point, sixteen consecutive integers around it, including the first and the last.
static Tensor groupedNumbers(const std::string &storage, int64_t n, int64_t k) {
  const int64_t group = groupOf(storage);
  const bool hasZeros = storage.find("zero") != std::string::npos;
  Tensor w = randomIntegers({n, k}, -8, 8), exponents = randomIntegers({n, k}, -12, 3),
         shifts = randomIntegers({n, k}, -7, 9);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t first = 0; first < k; first += group) {
      w.at({row, first + row % group}) = -8;
      if (hasZeros)
        w.at({row, first + (row + 5) % group}) = 7;
      const double factor = std::exp2(exponents.at({row, first})) * (!hasZeros && row % 3 == 0 ? -1 : 1);
      for (int64_t i = first; i < first + group; ++i)
        w.at({row, i}) = (w.at({row, i}) + (hasZeros ? shifts.at({row, first}) : 0)) * factor;
    }
  return w;
}

/// Returns e2m1 times a power of two for each group of 32 of each output.
static Tensor mxfp4Numbers(int64_t n, int64_t k) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Tensor w = randomIntegers({n, k}, -7, 8), exponents = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      double &value = w.at({row, column});
      const int64_t code = column % 32 == row % 32 ? 6 + row % 2 : int64_t(std::abs(value)); // 4 or 6
      value = std::ldexp(value < 0 ? -values[code] : values[code], int(exponents.at({row, column / 32 * 32})));
    }
  return w;
}

/// Returns e2m1, with a 6 in each group of 16, times an e4m3 for each group, with a 448 in each output, times a power
/// of two for each output.
static Tensor nvfp4Numbers(int64_t n, int64_t k) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  Tensor w = randomIntegers({n, k}, -7, 8), fractions = randomIntegers({n, k}, 8, 16),
         exponents = randomIntegers({n, k}, -9, 3), outers = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 16 * 16;
      const double scale =
          first == row % (k / 16) * 16 ? 448 : std::ldexp(fractions.at({row, first}), int(exponents.at({row, first})));
      double &value = w.at({row, column});
      const int64_t code = column % 16 == row % 16 ? 7 : int64_t(std::abs(value));
      value = (value < 0 ? -values[code] : values[code]) * std::ldexp(scale, int(outers.at({row, 0})));
    }
  return w;
}

/// Returns the integers 0 to 15, the first and the last in each group of 32, times an integer for each group, less a
/// quarter of another one; all times a power of two for each block of 256, in which both integers are 63 once.
static Tensor q4KNumbers(int64_t n, int64_t k) {
  Tensor w = randomIntegers({n, k}, 0, 16), scales = randomIntegers({n, k}, 5, 64),
         minimums = randomIntegers({n, k}, 0, 64), outers = randomIntegers({n, k}, -10, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 32 * 32, group = first / 32 % 8;
      const double scale = group == row % 8 ? 63 : scales.at({row, first}),
                   minimum = group == (row + 3) % 8 ? 63 : minimums.at({row, first});
      double &value = w.at({row, column});
      value = column % 32 == row % 32 ? 0 : column % 32 == (row + 5) % 32 ? 15 : value;
      value = std::ldexp(value * scale - minimum / 4, int(outers.at({row, column / 256 * 256})));
    }
  return w;
}

/// Returns the integers -32 to 31, the first in each group of 16, times an integer for each group, times a power of two
/// of either sign for each block of 256, in which the integer is -128 once.
static Tensor q6KNumbers(int64_t n, int64_t k) {
  Tensor w = randomIntegers({n, k}, -32, 32), scales = randomIntegers({n, k}, -127, 128),
         outers = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / 16 * 16;
      const double scale = first / 16 % 16 == row % 16 ? -128 : scales.at({row, first});
      double &value = w.at({row, column});
      value = column % 16 == row % 16 ? -32 : value;
      value *= std::ldexp(row % 3 == 0 ? -scale : scale, int(outers.at({row, column / 256 * 256})));
    }
  return w;
}

/// Returns e4m3 of any exponent, with 448 of either sign, times a power of two for each group of each output.
static Tensor fp8Numbers(int64_t n, int64_t k, int64_t group) {
  Tensor w = randomIntegers({n, k}, -15, 16), exponents = randomIntegers({n, k}, -9, 5), // less than 448
      scales = randomIntegers({n, k}, -12, 3);
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      double &value = w.at({row, column});
      const int64_t first = column / group * group;
      // Subnormal numbers are up to 7 times 2^-9.
      const double size = std::min(std::abs(value), exponents.at({row, column}) == -9 ? 7.0 : 15.0);
      value = column - first == row % group ? 448
                                            : std::copysign(std::ldexp(size, int(exponents.at({row, column}))), value);
      value = std::ldexp(column - first == (row + 1) % group ? -value : value, int(scales.at({row, first})));
    }
  return w;
}

Tensor storedNumbers(const std::string &storage, int64_t n, int64_t k) {
  const int64_t group = groupOf(storage) ? groupOf(storage) : k;
  if (storage.starts_with("i4"))
    return groupedNumbers(storage, n, k);
  if (storage.starts_with("f4E2M1FN"))
    return group == 16 ? nvfp4Numbers(n, k) : mxfp4Numbers(n, k);
  if (storage.starts_with("f8E4M3FN"))
    return fp8Numbers(n, k, group);
  if (storage.starts_with("ui4"))
    return q4KNumbers(n, k);
  if (storage.starts_with("i6"))
    return q6KNumbers(n, k);
  Tensor w = randomIntegers({n, k}, -127, 128), exponents = randomIntegers({n, k}, -12, 3);
  const bool isOfBytes = storage.starts_with("i8");
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; ++column) {
      const int64_t first = column / group * group;
      double &value = w.at({row, column});
      if (isOfBytes && column - first == row % group)
        value = row % 2 ? 127 : -127;
      value *= std::exp2(exponents.at({row, isOfBytes ? first : column}) - (groupOf(storage) ? 0 : 7)); // f16 is normal
    }
  return w;
}

} // namespace kiln::testing
