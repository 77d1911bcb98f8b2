// SPDX-License-Identifier: Apache-2.0
//
// Extents as types: a Dim is a fixed number, or a polynomial offset + factor * s0 * s1 over named run-time extents. It
// is a structural type, so it serves as a template argument and two Dims are equal exactly when their members are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kiln/rules.h"

namespace kiln {

/// A named run-time extent with inclusive bounds. The empty name means absent.
struct Symbol {
  static constexpr std::size_t capacity = 24;
  char name[capacity]{};
  char least[capacity]{}; // the name of another extent that it is at least as large as; empty: none
  std::int64_t min = 0, max = 0;

  constexpr bool present() const { return name[0] != 0; }
  constexpr bool operator==(const Symbol &) const = default;
};

struct Dim;

/// Reached only by a mistake: none of these is constexpr, so that the compiler names it where a constant is wanted.
namespace error {
[[noreturn]] inline void a_dimension_requires_bounds_1_le_min_le_max_dim_c2(std::int64_t, std::int64_t) {
  throw std::invalid_argument(rules::dim_c2);
}
[[noreturn]] inline void a_product_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c3() {
  throw std::invalid_argument(rules::dim_c3);
}
[[noreturn]] inline void a_sum_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c4() {
  throw std::invalid_argument(rules::dim_c4);
}
[[noreturn]] inline void a_dimension_requires_a_named_extent_within_its_bounds_as_the_least_dim_c6() {
  throw std::invalid_argument(rules::dim_c6);
}
} // namespace error

struct Dim {
  std::int64_t offset = 0;
  std::int64_t factor = 0; // 0 for a fixed extent
  Symbol symbols[2]{};     // sorted by name; absent ones last and counted as 1

  constexpr Dim() = default;
  /// A fixed extent.
  constexpr Dim(std::int64_t extent) : offset(extent) {}
  constexpr Dim(int extent) : offset(extent) {}
  /// A run-time extent `name` in [min, max].
  template <std::size_t N> constexpr Dim(const char (&name)[N], std::int64_t min, std::int64_t max) : factor(1) {
    static_assert(N > 1 && N <= Symbol::capacity, "kiln: a dimension's name requires 1 to 23 characters [dim_c1]");
    if (min < 1 || max < min)
      error::a_dimension_requires_bounds_1_le_min_le_max_dim_c2(min, max);
    for (std::size_t i = 0; i < N; ++i)
      symbols[0].name[i] = name[i];
    symbols[0].min = min;
    symbols[0].max = max;
  }
  /// A run-time extent `name` in [least, max], where `least` is another named extent; a call checks it.
  template <std::size_t N>
  constexpr Dim(const char (&name)[N], const Dim &least, std::int64_t max) : Dim(name, least.min(), max) {
    if (!least.named() || least.max() > max)
      error::a_dimension_requires_a_named_extent_within_its_bounds_as_the_least_dim_c6();
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      symbols[0].least[i] = least.symbols[0].name[i];
  }

  constexpr bool fixed() const { return factor == 0; }
  constexpr std::int64_t min() const { return offset + factor * (factor < 0 ? at(&Symbol::max) : at(&Symbol::min)); }
  constexpr std::int64_t max() const { return offset + factor * (factor < 0 ? at(&Symbol::min) : at(&Symbol::max)); }
  constexpr int degree() const { return symbols[0].present() + symbols[1].present(); }
  constexpr bool operator==(const Dim &) const = default;

  /// Whether it is a run-time extent itself, nothing added or multiplied.
  constexpr bool named() const { return offset == 0 && factor == 1 && degree() == 1; }
  /// Whether it was declared to be at least `other`, which is a named extent, too.
  constexpr bool declared_at_least(const Dim &other) const {
    if (!named() || !other.named())
      return false;
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      if (symbols[0].least[i] != other.symbols[0].name[i])
        return false;
    return true;
  }

  /// Whether two extents have a sum, a product of the form offset + factor * s0 * s1.
  static constexpr bool addable(const Dim &a, const Dim &b) { return a.fixed() || b.fixed() || a.same_symbols(b); }
  static constexpr bool multipliable(const Dim &a, const Dim &b) {
    return a.fixed() || b.fixed() || (a.offset == 0 && b.offset == 0 && a.degree() + b.degree() <= 2);
  }

  friend constexpr Dim operator+(const Dim &a, const Dim &b) {
    if (!addable(a, b))
      error::a_sum_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c4();
    Dim sum = a.fixed() ? b : a;
    sum.offset = a.offset + b.offset;
    sum.factor = a.factor + b.factor;
    return sum.fixed() ? Dim(sum.offset) : sum;
  }
  friend constexpr Dim operator-(const Dim &a, const Dim &b) { return a + b * Dim(-1); }
  friend constexpr Dim operator*(const Dim &a, const Dim &b) {
    if (!multipliable(a, b))
      error::a_product_of_dimensions_requires_the_form_offset_plus_factor_s0_s1_dim_c3();
    if (a.fixed() || b.fixed()) {
      Dim product = a.fixed() ? b : a;
      std::int64_t by = a.fixed() ? a.offset : b.offset;
      product.offset *= by;
      product.factor *= by;
      return product.fixed() ? Dim(product.offset) : product;
    }
    Dim product = a;
    product.factor *= b.factor;
    bool swap = follows(a.symbols[0], b.symbols[0]);
    product.symbols[0] = swap ? b.symbols[0] : a.symbols[0];
    product.symbols[1] = swap ? a.symbols[0] : b.symbols[0];
    return product;
  }

private:
  constexpr std::int64_t at(std::int64_t Symbol::*bound) const {
    std::int64_t product = 1;
    for (const Symbol &symbol : symbols)
      if (symbol.present())
        product *= symbol.*bound;
    return product;
  }
  constexpr bool same_symbols(const Dim &other) const {
    return symbols[0] == other.symbols[0] && symbols[1] == other.symbols[1];
  }
  static constexpr bool follows(const Symbol &a, const Symbol &b) {
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      if (a.name[i] != b.name[i])
        return a.name[i] > b.name[i];
    return false;
  }
};

} // namespace kiln
