// SPDX-License-Identifier: Apache-2.0
//
// The shape rules of the operations: pure functions on Shapes, evaluated where types are formed. Every function returns
// a shape even if its rule is broken, so that one mistake produces one message.
#pragma once

#include "kiln/tensor.h"

namespace kiln::detail {

constexpr bool axis_within(int axis, int rank) { return axis >= -rank && axis < rank; }
/// [-rank, rank) -> [0, rank); 0 for an axis that is out of range.
constexpr int normal_axis(int axis, int rank) { return !axis_within(axis, rank) ? 0 : axis < 0 ? axis + rank : axis; }

template <std::size_t R> constexpr Dim last(const Shape<R> &shape, std::size_t from_end = 1) {
  return from_end <= R ? shape[R - from_end] : Dim(1);
}

template <std::size_t R> constexpr Dim first(const Shape<R> &shape) { return R > 0 ? shape[0] : Dim(1); }

/// Replaces the last dimension; [extent] for a scalar.
template <std::size_t R> constexpr auto with_last(const Shape<R> &shape, Dim extent) {
  Shape<(R == 0 ? 1 : R)> result;
  for (std::size_t i = 0; i < R; ++i)
    result[i] = shape[i];
  result[result.size() - 1] = extent;
  return result;
}

template <std::size_t R> constexpr auto with_axis_extent(Shape<R> shape, int axis, Dim extent) {
  if (R > 0)
    shape[normal_axis(axis, R)] = extent;
  return shape;
}

template <std::size_t R> constexpr auto appended(const Shape<R> &shape, Dim extent) {
  Shape<R + 1> result;
  for (std::size_t i = 0; i < R; ++i)
    result[i] = shape[i];
  result[R] = extent;
  return result;
}

template <std::size_t R> constexpr auto prepended(Dim extent, const Shape<R> &shape) {
  Shape<R + 1> result;
  result[0] = extent;
  for (std::size_t i = 0; i < R; ++i)
    result[i + 1] = shape[i];
  return result;
}

template <std::size_t R> constexpr auto without_axis(const Shape<R> &shape, int axis) {
  Shape<(R == 0 ? 0 : R - 1)> result;
  int dropped = normal_axis(axis, R);
  for (std::size_t i = 0, j = 0; i < R; ++i)
    if (static_cast<int>(i) != dropped)
      result[j++] = shape[i];
  return result;
}

/// [1, 1, ...].
template <int Count> constexpr auto ones() {
  Shape<Count> shape;
  for (Dim &dim : shape.dims)
    dim = 1;
  return shape;
}

/// The shape without the last `Count` dimensions.
template <std::size_t Count, std::size_t R> constexpr auto leading(const Shape<R> &shape) {
  Shape<(R < Count ? 0 : R - Count)> result;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = shape[i];
  return result;
}

constexpr bool broadcasts(const Dim &a, const Dim &b) { return a == b || a == Dim(1) || b == Dim(1); }

/// Aligns the shapes at the last dimension, as NumPy does.
template <std::size_t A, std::size_t B> constexpr bool broadcasts(const Shape<A> &a, const Shape<B> &b) {
  for (std::size_t i = 1; i <= A && i <= B; ++i)
    if (!broadcasts(a[A - i], b[B - i]))
      return false;
  return true;
}
template <std::size_t A, std::size_t B> constexpr auto broadcast(const Shape<A> &a, const Shape<B> &b) {
  constexpr std::size_t rank = A > B ? A : B;
  Shape<rank> result;
  for (std::size_t i = 1; i <= rank; ++i)
    result[rank - i] = i > A || (i <= B && a[A - i] == Dim(1)) ? b[B - i] : a[A - i];
  return result;
}
/// Whether `from` broadcasts to exactly `to`.
template <std::size_t A, std::size_t B> constexpr bool broadcasts_to(const Shape<A> &from, const Shape<B> &to) {
  if constexpr (A > B)
    return false;
  else
    return broadcasts(from, to) && broadcast(from, to) == to;
}

template <std::size_t A, std::size_t B> constexpr bool same_shape(const Shape<A> &a, const Shape<B> &b) {
  if constexpr (A != B)
    return false;
  else
    return a == b;
}

template <std::size_t A, std::size_t B> constexpr auto matmul_shape(const Shape<A> &a, const Shape<B> &b) {
  auto batch = broadcast(leading<2>(a), leading<2>(b));
  return appended(appended(batch, last(a, 2)), last(b, 1));
}

template <std::size_t R> constexpr bool is_permutation(const Shape<R> &, const int *axes, int count) {
  if (count != static_cast<int>(R))
    return false;
  for (int i = 0; i < count; ++i) {
    if (axes[i] < 0 || axes[i] >= count)
      return false;
    for (int j = 0; j < i; ++j)
      if (axes[i] == axes[j])
        return false;
  }
  return true;
}
template <std::size_t R> constexpr auto permuted(const Shape<R> &shape, const int *axes, int count) {
  Shape<R> result = shape;
  if (is_permutation(shape, axes, count))
    for (std::size_t i = 0; i < R; ++i)
      result[i] = shape[axes[i]];
  return result;
}

template <std::size_t T, std::size_t I>
constexpr auto gather_shape(const Shape<T> &table, const Shape<I> &indices, int axis) {
  Shape<(T == 0 ? I : T - 1 + I)> result;
  std::size_t at = normal_axis(axis, T), next = 0;
  for (std::size_t i = 0; i < at; ++i)
    result[next++] = table[i];
  for (std::size_t i = 0; i < I; ++i)
    result[next++] = indices[i];
  for (std::size_t i = at + 1; i < T; ++i)
    result[next++] = table[i];
  return result;
}

constexpr std::int64_t greatest_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/// The canonical form of a number of elements as a product: a constant, symbols, and sums whose coefficients have no
/// common divisor and whose terms have no common symbol. A sum that is quadratic in one symbol, T * T - 4, is split
/// into its two factors if they exist.
template <std::size_t Rank> struct Factors {
  std::uint64_t constant = 1; // may wrap for an invalid shape
  Symbol symbols[2 * Rank + 1];
  Dim sums[2 * Rank + 1];
  std::size_t symbol_count = 0, sum_count = 0;

  constexpr explicit Factors(const Shape<Rank> &shape) {
    for (const Dim &dim : shape)
      if (dim.fixed())
        constant *= static_cast<std::uint64_t>(dim.offset);
      else
        multiply_symbols(without_constant(dim));
  }

private:
  /// Returns the sum divided by its constant factor, with a positive last term.
  constexpr Dim without_constant(const Dim &dim) {
    std::int64_t common = greatest_divisor(greatest_divisor(dim.offset, dim.factor), dim.second);
    common *= (dim.second != 0 ? dim.second : dim.factor) < 0 ? -1 : 1;
    constant *= static_cast<std::uint64_t>(common);
    Dim result = dim;
    result.offset /= common;
    result.factor /= common;
    result.second /= common;
    return result;
  }
  constexpr void multiply_symbols(const Dim &dim) {
    if (dim.offset != 0) {
      multiply_sum(dim);
      return;
    }
    for (int i = 0; i < 2; ++i) {
      const Symbol &symbol = dim.symbols[i];
      if (symbol.present() && (dim.second == 0 || symbol == dim.symbols[2] || symbol == dim.symbols[3])) {
        symbols[symbol_count++] = symbol;
        if (dim.second != 0) {
          multiply_sum(without_constant(without(dim.term(0), symbol) + without(dim.term(1), symbol)));
          return;
        }
      }
    }
    if (dim.second != 0)
      multiply_sum(dim);
  }
  /// Returns the quotient of a term and one of its symbols.
  static constexpr Dim without(const Dim &term, const Symbol &symbol) {
    if (!term.symbols[1].present())
      return Dim(term.factor);
    Dim rest;
    rest.factor = term.factor;
    rest.symbols[0] = term.symbols[term.symbols[0] == symbol ? 1 : 0];
    return rest;
  }
  /// Splits a s^2 + b s + c by its roots, which are (-b +- root(b^2 - 4 a c)) / 2 a.
  constexpr void multiply_sum(const Dim &dim) {
    const Quadratic it = quadratic(dim);
    const std::int64_t square = it.b * it.b - 4 * it.a * it.c, distance = it.a == 0 ? -1 : root(square);
    if (distance < 0) {
      sums[sum_count++] = dim;
      return;
    }
    for (std::int64_t sign : {-1, 1}) {
      const std::int64_t offset = it.b + sign * distance, common = greatest_divisor(2 * it.a, offset);
      Dim part;
      part.offset = offset / common;
      part.factor = 2 * it.a / common;
      part.symbols[0] = dim.symbols[0];
      sums[sum_count++] = part;
    }
  }
  struct Quadratic {
    std::int64_t a = 0, b = 0, c = 0;
  };
  /// Returns the coefficients if the sum is quadratic in one symbol and they are small enough to compute with.
  static constexpr Quadratic quadratic(const Dim &dim) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    const Symbol &symbol = dim.symbols[0];
    auto is_square = [&](int i) { return dim.symbols[i] == symbol && dim.symbols[i + 1] == symbol; };
    auto is_linear = [&](int i) { return dim.symbols[i] == symbol && !dim.symbols[i + 1].present(); };
    auto is_small = [](std::int64_t number) { return number >= -most && number <= most; };
    if (!is_small(dim.offset) || !is_small(dim.factor) || !is_small(dim.second))
      return {};
    if (is_square(0) && dim.second == 0)
      return {dim.factor, 0, dim.offset};
    if (is_linear(0) && is_square(2)) // a term of one symbol comes before one of two
      return {dim.second, dim.factor, dim.offset};
    return {};
  }
  /// Returns the integer square root, or -1 if `square` is not a perfect square.
  static constexpr std::int64_t root(std::int64_t square) {
    std::int64_t low = 0, high = 3037000499; // the root of the largest number of 64 bits
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (middle * middle <= square)
        low = middle;
      else
        high = middle - 1;
    }
    return low * low == square ? low : -1;
  }
};

/// Whether two lists have the same elements in any order.
template <class Item> constexpr bool same_items(const Item *a, std::size_t a_count, Item *b, std::size_t b_count) {
  for (std::size_t i = 0; i < a_count && a_count == b_count; ++i) {
    std::size_t j = i;
    while (j < b_count && !(b[j] == a[i]))
      ++j;
    if (j == b_count)
      return false;
    const Item found = b[j];
    b[j] = b[i];
    b[i] = found;
  }
  return a_count == b_count;
}

/// Whether two shapes have the same number of elements for every value of the symbols.
template <std::size_t A, std::size_t B> constexpr bool same_count(const Shape<A> &a, const Shape<B> &b) {
  const Factors<A> left(a);
  Factors<B> right(b);
  return left.constant == right.constant &&
         same_items(left.symbols, left.symbol_count, right.symbols, right.symbol_count) &&
         same_items(left.sums, left.sum_count, right.sums, right.sum_count);
}

/// Whether [start, start + extent) is within `whole` for every value of the symbols.
constexpr bool slice_within(const Dim &whole, std::int64_t start, const Dim &extent) {
  if (start < 0)
    return false;
  if (!Dim::addable(whole, extent))
    return start <= whole.min() - extent.max();
  const Dim left = whole - extent;
  return left.flaw == Flaw::none && left.min() >= start;
}

/// Whether a >= b for every value of the symbols.
constexpr bool at_least(const Dim &a, const Dim &b) { return a.declared_at_least(b) || slice_within(a, 0, b); }

} // namespace kiln::detail
