// SPDX-License-Identifier: Apache-2.0
//
// Extents as types: a Dim is a fixed number, or a polynomial offset + factor * s0 * s1 over named run-time extents. It is a
// structural type, so it serves as a template argument and two Dims are equal exactly when their members are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln {

/// A named run-time extent with inclusive bounds. The empty name means absent.
struct Symbol {
  static constexpr std::size_t capacity = 24;
  char name[capacity]{};
  std::int64_t min = 0, max = 0;

  constexpr bool present() const { return name[0] != 0; }
  constexpr bool operator==(const Symbol &) const = default;
};

struct Dim {
  std::int64_t offset = 0;
  std::int64_t factor = 0; // 0 for a fixed extent
  Symbol symbols[2]{};     // sorted by name; absent ones last and counted as 1

  /// A fixed extent.
  constexpr Dim(std::int64_t extent) : offset(extent) {}
  constexpr Dim(int extent) : offset(extent) {}
  /// A run-time extent `name` in [min, max].
  template <std::size_t N>
  constexpr Dim(const char (&name)[N], std::int64_t min, std::int64_t max) : factor(1) {
    static_assert(N > 1 && N <= Symbol::capacity, "kiln: the name of a dimension has 1 to 23 characters");
    for (std::size_t i = 0; i < N; ++i)
      symbols[0].name[i] = name[i];
    symbols[0].min = min;
    symbols[0].max = max;
  }

  constexpr bool fixed() const { return factor == 0; }
  constexpr std::int64_t min() const { return offset + factor * at(&Symbol::min); }
  constexpr std::int64_t max() const { return offset + factor * at(&Symbol::max); }
  constexpr bool operator==(const Dim &) const = default;

private:
  constexpr std::int64_t at(std::int64_t Symbol::*bound) const {
    std::int64_t product = 1;
    for (const Symbol &symbol : symbols)
      if (symbol.present())
        product *= symbol.*bound;
    return product;
  }
};

} // namespace kiln
