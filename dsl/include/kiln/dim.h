// SPDX-License-Identifier: Apache-2.0
//
// Dimensions as types: a Dim is a fixed number, or a number plus one or two terms, each a multiple of one or two
// symbolic dimensions. It is a structural type, so it serves as a template argument, and two Dims are equal exactly
// when their members are. A Shape is a list of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

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
    return min == other.min && max == other.max && compare(name, other.name) == 0 && compare(least, other.least) == 0;
  }
  /// Returns a number below, equal to or above 0, as this symbol comes before, is, or comes after the other one.
  constexpr int compare(const Symbol &other) const {
    if (const int order = compare(name, other.name); order != 0)
      return order;
    if (min != other.min || max != other.max)
      return min < other.min || (min == other.min && max < other.max) ? -1 : 1;
    return compare(least, other.least);
  }

private:
  static constexpr int compare(const char (&a)[capacity], const char (&b)[capacity]) {
    for (std::size_t i = 0; i < capacity; ++i)
      if (a[i] != b[i])
        return a[i] < b[i] ? -1 : 1;
      else if (a[i] == 0)
        break;
    return 0;
  }
};

/// Why a dimension is invalid. An invalid dimension counts as 1, so that tracing continues to the place that uses it,
/// which reports the error.
enum class Flaw : std::uint8_t { none, bounds, product, sum, least, size };

constexpr const char *rule_of(Flaw flaw) {
  constexpr const char *texts[] = {"", rules::dim_c2, rules::dim_c3, rules::dim_c4, rules::dim_c6, rules::dim_c7};
  return texts[static_cast<int>(flaw)];
}

/// offset + factor * symbols[0] * symbols[1] + second * symbols[2] * symbols[3].
struct Dim {
  static constexpr int max_terms = 2;

  std::int64_t offset = 0;
  std::int64_t factor = 0, second = 0; // of the terms, which are sorted; 0 for absent ones, which are last
  Symbol symbols[2 * max_terms]{};     // two of each term, sorted; absent ones last, counted as 1
  Flaw flaw = Flaw::none;              // if set, the symbols are those of the operands

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
  constexpr std::int64_t min() const {
    return offset + bound(0, &Symbol::min, &Symbol::max) + bound(1, &Symbol::min, &Symbol::max);
  }
  constexpr std::int64_t max() const {
    return offset + bound(0, &Symbol::max, &Symbol::min) + bound(1, &Symbol::max, &Symbol::min);
  }
  constexpr int terms() const { return (factor != 0) + (second != 0); }
  /// Returns the largest number of symbols in a term.
  constexpr int degree() const { return degree(0) > degree(1) ? degree(0) : degree(1); }
  constexpr bool operator==(const Dim &other) const {
    return offset == other.offset && factor == other.factor && second == other.second && flaw == other.flaw &&
           detail::are_equal(symbols, other.symbols);
  }

  /// Returns a term without the offset and the other term.
  constexpr Dim term(int number) const {
    Dim result;
    result.put(0, factor_of(number), symbols + 2 * number);
    return result;
  }
  /// Returns the value, given a function from symbols to their values.
  template <class Values> constexpr std::int64_t value(const Values &value_of) const {
    std::int64_t sum = offset;
    for (int i = 0; i < terms(); ++i) {
      std::int64_t product = factor_of(i);
      for (int k = 0; k < degree(i); ++k)
        product *= value_of(symbols[2 * i + k]);
      sum += product;
    }
    return sum;
  }

  /// Whether the dimension is a single symbol with nothing added or multiplied.
  constexpr bool named() const { return offset == 0 && factor == 1 && second == 0 && degree() == 1; }
  /// Whether the dimension was declared to be at least `other`, which is a named dimension, too.
  constexpr bool declared_at_least(const Dim &other) const {
    if (!named() || !other.named())
      return false;
    for (std::size_t i = 0; i < Symbol::capacity; ++i)
      if (symbols[0].least[i] != other.symbols[0].name[i])
        return false;
    return true;
  }

  /// Whether the sum, or the product, of two dimensions has at most two terms of at most two symbols.
  static constexpr bool addable(const Dim &a, const Dim &b) {
    return a.fixed() || b.fixed() || (a + b).flaw != Flaw::sum;
  }
  static constexpr bool multipliable(const Dim &a, const Dim &b) {
    return a.fixed() || b.fixed() || (a * b).flaw != Flaw::product;
  }
  /// Whether both factors, the offset and thus every value are multiples of `number`.
  constexpr bool divisible(std::int64_t number) const {
    return number >= 1 && offset % number == 0 && factor % number == 0 && second % number == 0;
  }
  /// Returns the quotient; the dimension must be divisible.
  constexpr Dim divided(std::int64_t number) const {
    Dim result = *this;
    result.offset /= number;
    result.factor /= number;
    result.second /= number;
    return result;
  }

  friend constexpr Dim operator+(const Dim &a, const Dim &b) {
    if (a.fixed() || b.fixed()) {
      Dim sum = a.fixed() ? b : a;
      sum.offset = a.offset + b.offset;
      return sum.checked(a, b);
    }
    Dim sum;
    sum.offset = a.offset + b.offset;
    int count = 0;
    for (int i = 0, j = 0; i < a.terms() || j < b.terms();) {
      const int order = i == a.terms() ? 1 : j == b.terms() ? -1 : compare(a.symbols + 2 * i, b.symbols + 2 * j);
      const std::int64_t both = (order <= 0 ? a.factor_of(i) : 0) + (order >= 0 ? b.factor_of(j) : 0);
      if (both != 0 && count == max_terms)
        return flawed(Flaw::sum, a, b);
      if (both != 0)
        sum.put(count++, both, order <= 0 ? a.symbols + 2 * i : b.symbols + 2 * j);
      i += order <= 0;
      j += order >= 0;
    }
    return sum.checked(a, b);
  }
  friend constexpr Dim operator-(const Dim &a, const Dim &b) { return a + b * Dim(-1); }
  friend constexpr Dim operator*(const Dim &a, const Dim &b) {
    if (a.fixed() || b.fixed()) {
      Dim product = a.fixed() ? b : a;
      const std::int64_t by = a.fixed() ? a.offset : b.offset;
      product.offset *= by;
      product.factor *= by;
      product.second *= by;
      return product.checked(a, b);
    }
    Dim product = b * Dim(a.offset) + (a - Dim(a.offset)) * Dim(b.offset);
    for (int i = 0; i < a.terms(); ++i)
      for (int j = 0; j < b.terms(); ++j)
        product = product + of_terms(a, i, b, j);
    if (product.flaw == Flaw::none)
      return product;
    return flawed(product.flaw == Flaw::size ? Flaw::size : Flaw::product, a, b);
  }

private:
  constexpr void become(Flaw what) {
    flaw = what;
    offset = 1;
    factor = second = 0;
  }
  /// The invalid result of two dimensions without a valid sum or product.
  static constexpr Dim flawed(Flaw what, const Dim &a, const Dim &b) {
    Dim result = a.flaw != Flaw::none ? a : b;
    if (a.flaw != Flaw::none || b.flaw != Flaw::none)
      return result;
    result = Dim();
    int count = 0;
    for (const Dim *operand : {&a, &b})
      for (const Symbol &symbol : operand->symbols)
        if (symbol.present() && count < 2 * max_terms)
          result.symbols[count++] = symbol;
    result.become(what);
    return result;
  }
  /// Returns the result of an operation on a and b if all of its values fit into 32 bits, otherwise an invalid Dim.
  constexpr Dim checked(const Dim &a, const Dim &b) const {
    if (a.flaw != Flaw::none || b.flaw != Flaw::none)
      return flawed(Flaw::none, a, b);
    if (fixed())
      return offset;
    auto within = [](std::int64_t number) { return number >= -largest && number <= largest; };
    bool fits = within(offset);
    for (int i = 0; i < terms(); ++i)
      fits = fits && within(factor_of(i)) && within(at(i, &Symbol::max)) && within(factor_of(i) * at(i, &Symbol::max));
    return fits && within(min()) && within(max()) ? *this : flawed(Flaw::size, a, b);
  }
  constexpr std::int64_t factor_of(int number) const { return number == 0 ? factor : second; }
  constexpr int degree(int number) const { return symbols[2 * number].present() + symbols[2 * number + 1].present(); }
  /// Returns a term where its symbols have these bounds.
  constexpr std::int64_t at(int number, std::int64_t Symbol::*bound) const {
    std::int64_t product = 1;
    for (int k = 0; k < degree(number); ++k)
      product *= symbols[2 * number + k].*bound;
    return product;
  }
  constexpr std::int64_t bound(int number, std::int64_t Symbol::*positive, std::int64_t Symbol::*negative) const {
    const std::int64_t by = factor_of(number);
    return by == 0 ? 0 : by * at(number, by > 0 ? positive : negative);
  }
  /// Sets a term. Absent symbols are not assigned, see Symbol::least.
  constexpr void put(int number, std::int64_t by, const Symbol *of) {
    (number == 0 ? factor : second) = by;
    for (int k = 0; k < 2; ++k)
      if (of[k].present())
        symbols[2 * number + k] = of[k];
  }
  /// Returns the product of two terms.
  static constexpr Dim of_terms(const Dim &a, int i, const Dim &b, int j) {
    if (a.degree(i) + b.degree(j) > 2)
      return flawed(Flaw::product, a, b);
    const Symbol &x = a.symbols[2 * i], &y = b.symbols[2 * j];
    const bool swap = x.compare(y) > 0;
    const Symbol both[2] = {swap ? y : x, swap ? x : y};
    Dim product;
    product.put(0, a.factor_of(i) * b.factor_of(j), both);
    return product.checked(a, b);
  }
  /// Compares the two symbols of terms.
  static constexpr int compare(const Symbol *a, const Symbol *b) {
    const int order = a[0].compare(b[0]);
    return order != 0 ? order : a[1].compare(b[1]);
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
