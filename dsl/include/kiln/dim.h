// SPDX-License-Identifier: Apache-2.0
//
// Dimensions as types: a Dim is a fixed number, or a polynomial offset + factor * s0 * s1 of symbolic dimensions. It is
// a structural type, so it serves as a template argument, and two Dims are equal exactly when their members are. A
// Shape is a list of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/rules.h"

namespace kiln {

namespace detail {

/// Whether two arrays are equal. Types with arrays call this in place of a defaulted comparison, of which g++ 15 and 16
/// take the result for one temporary object as that for another one in the same expression.
template <typename T, std::size_t N> constexpr bool are_equal(const T (&a)[N], const T (&b)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (!(a[i] == b[i]))
      return false;
  return true;
}

} // namespace detail

/// A symbolic dimension: a name with inclusive bounds. The empty name means absent.
struct Symbol {
  static constexpr std::size_t capacity = 24;
  char name[capacity]{};
  std::int64_t min = 0, max = 0;
  // The name of another symbol that is a lower bound; empty: none. It is the last member because of g++ 15, which takes
  // an array of zeros that was assigned and one that was initialised for different template arguments, except at the
  // end.
  char least[capacity]{};

  constexpr bool present() const { return name[0] != 0; }
  constexpr bool operator==(const Symbol &other) const {
    return min == other.min && max == other.max && detail::are_equal(name, other.name) &&
           detail::are_equal(least, other.least);
  }
};

/// Why a dimension is invalid. An invalid dimension counts as 1, so that tracing continues to the place that uses it,
/// which reports the error.
enum class Flaw : std::uint8_t { none, bounds, product, sum, least, size };

constexpr const char *rule_of(Flaw flaw) {
  constexpr const char *texts[] = {"", rules::dim_c2, rules::dim_c3, rules::dim_c4, rules::dim_c6, rules::dim_c7};
  return texts[static_cast<int>(flaw)];
}

struct Dim {
  std::int64_t offset = 0;
  std::int64_t factor = 0; // 0 for a fixed extent
  Symbol symbols[2]{};     // sorted by name; absent ones last, counted as 1
  Flaw flaw = Flaw::none;  // if set, the symbols are those of the operands

  /// The largest dimension, since kernels index with 32 bits.
  static constexpr std::int64_t largest = 2147483647;

  constexpr Dim() = default;
  /// A fixed dimension.
  constexpr Dim(std::int64_t extent) : offset(extent) {
    if (extent < -largest || extent > largest) {
      symbols[0].max = extent;
      become(Flaw::size);
    }
  }
  constexpr Dim(int extent) : Dim(std::int64_t{extent}) {}
  /// A dynamic dimension `name` in [min, max].
  template <std::size_t N> constexpr Dim(const char (&name)[N], std::int64_t min, std::int64_t max) : factor(1) {
    static_assert(N > 1 && N <= Symbol::capacity,
                  "kiln: dimension: name too short or too long; expected 1 to 23 characters [dim_c1]");
    for (std::size_t i = 0; i < N; ++i)
      symbols[0].name[i] = name[i];
    symbols[0].min = min;
    symbols[0].max = max;
    if (min < 1 || max < min)
      become(Flaw::bounds);
    else if (max > largest)
      become(Flaw::size);
  }
  /// A dynamic dimension `name` in [least, max], where `least` is another named dimension. Each call checks the bound.
  template <std::size_t N>
  constexpr Dim(const char (&name)[N], const Dim &least, std::int64_t max) : Dim(name, least.min(), max) {
    if (least.flaw != Flaw::none)
      become(least.flaw);
    else if (!least.named() || least.max() > max)
      become(Flaw::least);
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      symbols[0].least[i] = least.symbols[0].name[i];
  }

  constexpr bool fixed() const { return factor == 0; }
  constexpr std::int64_t min() const { return offset + factor * (factor < 0 ? at(&Symbol::max) : at(&Symbol::min)); }
  constexpr std::int64_t max() const { return offset + factor * (factor < 0 ? at(&Symbol::min) : at(&Symbol::max)); }
  constexpr int degree() const { return symbols[0].present() + symbols[1].present(); }
  constexpr bool operator==(const Dim &other) const {
    return offset == other.offset && factor == other.factor && flaw == other.flaw &&
           detail::are_equal(symbols, other.symbols);
  }

  /// Whether the dimension is a single symbol with nothing added or multiplied.
  constexpr bool named() const { return offset == 0 && factor == 1 && degree() == 1; }
  /// Whether the dimension was declared to be at least `other`, which is a named dimension, too.
  constexpr bool declared_at_least(const Dim &other) const {
    if (!named() || !other.named())
      return false;
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      if (symbols[0].least[i] != other.symbols[0].name[i])
        return false;
    return true;
  }

  /// Whether the sum, or the product, of two dimensions has the form offset + factor * s0 * s1.
  static constexpr bool addable(const Dim &a, const Dim &b) { return a.fixed() || b.fixed() || a.same_symbols(b); }
  static constexpr bool multipliable(const Dim &a, const Dim &b) {
    return a.fixed() || b.fixed() || (a.offset == 0 && b.offset == 0 && a.degree() + b.degree() <= 2);
  }

  friend constexpr Dim operator+(const Dim &a, const Dim &b) {
    if (!addable(a, b))
      return flawed(Flaw::sum, a, b);
    Dim sum = a.fixed() ? b : a;
    sum.offset = a.offset + b.offset;
    sum.factor = a.factor + b.factor;
    return sum.checked(a, b);
  }
  friend constexpr Dim operator-(const Dim &a, const Dim &b) { return a + b * Dim(-1); }
  friend constexpr Dim operator*(const Dim &a, const Dim &b) {
    if (!multipliable(a, b))
      return flawed(Flaw::product, a, b);
    if (a.fixed() || b.fixed()) {
      Dim product = a.fixed() ? b : a;
      std::int64_t by = a.fixed() ? a.offset : b.offset;
      product.offset *= by;
      product.factor *= by;
      return product.checked(a, b);
    }
    Dim product = a;
    product.factor *= b.factor;
    bool swap = follows(a.symbols[0], b.symbols[0]);
    product.symbols[0] = swap ? b.symbols[0] : a.symbols[0];
    product.symbols[1] = swap ? a.symbols[0] : b.symbols[0];
    return product.checked(a, b);
  }

private:
  constexpr void become(Flaw what) {
    flaw = what;
    offset = 1;
    factor = 0;
  }
  /// The invalid result of two dimensions without a valid sum or product.
  static constexpr Dim flawed(Flaw what, const Dim &a, const Dim &b) {
    Dim result = a.flaw != Flaw::none ? a : b;
    if (a.flaw == Flaw::none && b.flaw == Flaw::none) {
      result.symbols[0] = a.symbols[0];
      result.symbols[1] = b.symbols[0];
      result.become(what);
    }
    return result;
  }
  /// Returns the result of an operation on a and b if all of its values fit into 32 bits, otherwise an invalid Dim.
  constexpr Dim checked(const Dim &a, const Dim &b) const {
    if (a.flaw != Flaw::none || b.flaw != Flaw::none)
      return flawed(Flaw::none, a, b);
    if (fixed())
      return offset;
    auto within = [](std::int64_t number) { return number >= -largest && number <= largest; };
    const std::int64_t most = at(&Symbol::max);
    const bool fits = within(offset) && within(factor) && within(most) && within(factor * most);
    return fits && within(min()) && within(max()) ? *this : flawed(Flaw::size, a, b);
  }
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

/// A list of dimensions as a template argument.
template <std::size_t Rank> struct Shape {
  Dim dims[Rank == 0 ? 1 : Rank]{};

  static constexpr std::size_t size() { return Rank; }
  constexpr const Dim &operator[](std::size_t i) const { return dims[i]; }
  constexpr Dim &operator[](std::size_t i) { return dims[i]; }
  constexpr const Dim *begin() const { return dims; }
  constexpr const Dim *end() const { return dims + Rank; }
  constexpr bool operator==(const Shape &other) const { return detail::are_equal(dims, other.dims); }
};

/// The most axes that a tensor may have: the dimensions that the runtime's tables hold.
inline constexpr std::size_t largest_rank = 8;

namespace detail {
/// Whether a tensor can have this shape: kernels index with 32 bits.
template <std::size_t Rank> constexpr bool sound(const Shape<Rank> &shape) {
  std::int64_t count = 1;
  for (const Dim &dim : shape) {
    if (dim.flaw != Flaw::none || dim.min() < 1 || dim.max() > Dim::largest || count > Dim::largest)
      return false;
    count *= dim.max();
  }
  return Rank <= largest_rank && count <= Dim::largest;
}
} // namespace detail

} // namespace kiln
