// SPDX-License-Identifier: Apache-2.0
//
// Sums of products by an equation, einsum<"bij,bjk->bik">(a, b). The equation is parsed at compile time and becomes
// sums, transpositions and at most one linear, matmul or mul.
#pragma once

#include "kiln/contraction.h"
#include "kiln/rows.h"

namespace kiln {

namespace detail {

/// The letters of an operand or of the result, one for each axis.
struct Letters {
  static constexpr int capacity = 2 * largest_rank;
  int count = 0;
  char of[capacity]{}; // the last member for the reason given for Symbol

  constexpr bool operator==(const Letters &) const = default;
  constexpr int find(char letter) const {
    for (int i = 0; i < count; ++i)
      if (of[i] == letter)
        return i;
    return -1;
  }
  constexpr bool has(char letter) const { return find(letter) >= 0; }
  constexpr void put(char letter) {
    if (count < capacity)
      of[count++] = letter;
  }
  constexpr Letters and_then(char letter) const {
    Letters longer = *this;
    longer.put(letter);
    return longer;
  }
  constexpr Letters and_then(const Letters &more) const {
    Letters both = *this;
    for (int i = 0; i < more.count; ++i)
      both.put(more.of[i]);
    return both;
  }
};

/// An equation, or the rule that it breaks.
struct Equation {
  Letters operands[2], result;
  int count = 0; // of operands
  const char *broken = nullptr;
};

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Splits "ij,jk->ik" into its lists of letters; spaces are ignored.
constexpr Equation split_equation(const char *text) {
  Equation equation;
  Letters *list = &equation.operands[0];
  equation.count = 1;
  bool has_result = false;
  for (const char *c = text; *c && !equation.broken; ++c) {
    if (*c == ' ')
      continue;
    if (is_letter(*c)) {
      if (list->count == 6) // no tensor has more axes
        equation.broken = rules::einsum_c6;
      list->put(*c);
    } else if (*c == ',' && !has_result && equation.count < 2) {
      list = &equation.operands[equation.count++];
    } else if (c[0] == '-' && c[1] == '>' && !has_result) {
      has_result = true;
      list = &equation.result;
      ++c;
    } else {
      equation.broken = *c == '.' ? rules::einsum_c2 : rules::einsum_c1;
    }
  }
  if (!equation.broken && !has_result)
    equation.broken = rules::einsum_c1;
  return equation;
}

constexpr bool has_twice(const Letters &list) {
  for (int i = 0; i < list.count; ++i)
    if (list.find(list.of[i]) != i)
      return true;
  return false;
}

/// split_equation, and the rules that need no operands.
constexpr Equation parse_equation(const char *text) {
  Equation equation = split_equation(text);
  if (equation.broken)
    return equation;
  if (has_twice(equation.operands[0]) || has_twice(equation.operands[1]) || has_twice(equation.result))
    equation.broken = rules::einsum_c3;
  for (int i = 0; i < equation.result.count && !equation.broken; ++i)
    if (!equation.operands[0].has(equation.result.of[i]) && !equation.operands[1].has(equation.result.of[i]))
      equation.broken = rules::einsum_c4;
  return equation;
}

/// The letters of `list` that `other` has, or has not, in their order.
constexpr Letters common(const Letters &list, const Letters &other, bool is_in_both = true) {
  Letters result;
  for (int i = 0; i < list.count; ++i)
    if (other.has(list.of[i]) == is_in_both)
      result.put(list.of[i]);
  return result;
}
constexpr Letters without(const Letters &list, const Letters &other) { return common(list, other, false); }

/// The dimensions of letters of an operand, as axes or as their product.
template <std::size_t R, std::size_t N>
constexpr void put_extents(Shape<N> &into, std::size_t at, const Shape<R> &shape, const Letters &own,
                           const Letters &wanted) {
  for (int i = 0; i < wanted.count; ++i)
    into[at + i] = shape[own.find(wanted.of[i])];
}
template <std::size_t R> constexpr Dim product_of(const Shape<R> &shape, const Letters &own, const Letters &wanted) {
  Dim product = 1;
  for (int i = 0; i < wanted.count; ++i)
    product = product * shape[own.find(wanted.of[i])];
  return product;
}

/// The axes of x in another order of their letters.
template <Letters From, Letters To, tensor X> constexpr auto reordered(const X &x, Site site) {
  if constexpr (From == To)
    return x;
  else
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return transpose<From.find(To.of[I])...>(x, site);
    }(std::make_integer_sequence<int, To.count>());
}

/// Sums over the axes whose letters are not in `Kept`.
template <Letters Own, Letters Kept, tensor X> constexpr auto summed_to(const X &x, Site site) {
  constexpr Letters summed = without(Own, Kept);
  if constexpr (summed.count == 0)
    return x;
  else {
    constexpr Letters left = without(Own, Letters().and_then(summed.of[summed.count - 1]));
    return summed_to<left, Kept>(sum<Own.find(summed.of[summed.count - 1])>(x, site), site);
  }
}

/// Reshapes x if it has another shape.
template <auto Extents, tensor X> constexpr auto viewed_if_other(const X &x) {
  if constexpr (same_shape(X::shape, Extents))
    return x;
  else
    return viewed<Extents>(x);
}

/// The axes of x in the order of `Result`, with axes of extent 1 for letters that x lacks.
template <Letters Own, Letters Result, tensor X> constexpr auto aligned(const X &x, Site site) {
  constexpr Letters order = common(Result, Own);
  constexpr auto shape = [] {
    auto result = ones<Result.count>();
    for (int i = 0; i < Result.count; ++i)
      if (Own.has(Result.of[i]))
        result[i] = X::shape[Own.find(Result.of[i])];
    return result;
  }();
  return viewed_if_other<shape>(reordered<Own, order>(x, site));
}

/// A product of two operands, each of whose letters is in the other one or in the result.
template <Letters A, Letters B, Letters Result> struct Product {
  static constexpr Letters shared = without(common(A, B), Result), batch = common(common(Result, A), B),
                           rows = without(Result, B), columns = without(Result, A);
  static constexpr bool is_linear = batch.count == 0 && shared.count == 1 && columns.count == 1 && B.count == 2;
};

/// As batched matrices: batch axes, then rows and the summed axis, each merged.
template <class P, Letters A, Letters B, Letters Result, tensor X, tensor Y>
constexpr auto multiplied(const X &a, const Y &b, Site site) {
  constexpr auto left = [] {
    Shape<P::batch.count + 2> shape;
    put_extents(shape, 0, X::shape, A, P::batch);
    shape[P::batch.count] = product_of(X::shape, A, P::rows);
    shape[P::batch.count + 1] = product_of(X::shape, A, P::shared);
    return shape;
  }();
  constexpr auto right = [] {
    Shape<P::batch.count + 2> shape;
    put_extents(shape, 0, Y::shape, B, P::batch);
    shape[P::batch.count] = product_of(Y::shape, B, P::shared);
    shape[P::batch.count + 1] = product_of(Y::shape, B, P::columns);
    return shape;
  }();
  constexpr auto split = [] {
    Shape<P::batch.count + P::rows.count + P::columns.count> shape;
    put_extents(shape, 0, X::shape, A, P::batch);
    put_extents(shape, P::batch.count, X::shape, A, P::rows);
    put_extents(shape, P::batch.count + P::rows.count, Y::shape, B, P::columns);
    return shape;
  }();
  auto x = viewed_if_other<left>(reordered<A, P::batch.and_then(P::rows).and_then(P::shared)>(a, site));
  auto y = viewed_if_other<right>(reordered<B, P::batch.and_then(P::shared).and_then(P::columns)>(b, site));
  auto product = viewed_if_other<split>(matmul(x, y, site));
  return reordered<P::batch.and_then(P::rows).and_then(P::columns), Result>(product, site);
}

/// einsum of two operands that fit.
template <Letters A, Letters B, Letters Result, tensor X, tensor Y>
constexpr auto contracted(const X &a, const Y &b, Site site) {
  using P = Product<A, B, Result>;
  if constexpr (P::shared.count == 0) {
    return mul(aligned<A, Result>(a, site), aligned<B, Result>(b, site), site);
  } else if constexpr (P::is_linear) {
    // The form in which weights may be quantised; it needs no transposition of b.
    constexpr WeightOrder order = B.of[0] == P::shared.of[0] ? WeightOrder::in_out : WeightOrder::out_in;
    auto product = kiln::linear<order>(reordered<A, P::rows.and_then(P::shared)>(a, site), b, site);
    return reordered<P::rows.and_then(P::columns), Result>(product, site);
  } else if constexpr (Product<B, A, Result>::is_linear) {
    return contracted<B, A, Result>(b, a, site);
  } else {
    return multiplied<P, A, B, Result>(a, b, site);
  }
}

/// The position in `a` of a letter whose dimensions in two operands differ, or -1.
template <std::size_t R, std::size_t S>
constexpr int find_differing(const Letters &a, const Shape<R> &shape, const Letters &b, const Shape<S> &other) {
  for (int i = 0; i < a.count; ++i)
    if (const int j = b.find(a.of[i]); j >= 0)
      if (!(shape[i] == other[j]))
        return i;
  return -1;
}

/// "ij of f32[2, 3, 4]".
template <tensor X> constexpr Text lettered(const Letters &letters, const X &x) {
  return Text().put(letters.of, letters.of + letters.count).put(" of ").put(typed(x).data());
}

/// Reports an equation that is wrong by itself or has another number of operands.
template <int Count> constexpr void refuse_equation(Tracer *tracer, const char *text, const Equation &equation) {
  if (equation.broken)
    tracer->fail(equation.broken, text);
  else
    tracer->fail(rules::einsum_c5,
                 Text().put(text).put(" of ").put(Count).put(Count > 1 ? " operands" : " operand").data());
}

} // namespace detail

/// Permutes and sums the axes of x: `einsum<"bij->ji">(x)`.
template <detail::Literal Formula, tensor X> constexpr auto einsum(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  constexpr detail::Equation equation = detail::parse_equation(Formula.text);
  constexpr detail::Letters own = equation.operands[0], result = equation.result;
  if constexpr (equation.broken != nullptr || equation.count != 1) {
    detail::refuse_equation<1>(x.tracer, Formula.text, equation);
    return x;
  } else if constexpr (own.count != X::rank) {
    x.tracer->fail(rules::einsum_c6, detail::lettered(own, x).data());
    return x;
  } else if constexpr (X::element == boolean) {
    x.tracer->fail(rules::einsum_c8, detail::typed(x).data());
    return x;
  } else {
    constexpr auto left = detail::common(own, result);
    return detail::reordered<left, result>(detail::summed_to<own, result>(x, site), site);
  }
}

/// The sums of products of a and b: `einsum<"bij,bjk->bik">(a, b)` is y[b, i, k] = sum over j of a[b, i, j] b[b, j, k].
template <detail::Literal Formula, tensor A, tensor B>
constexpr auto einsum(const A &a, const B &b, Site site = Site::here()) {
  a.tracer->at(site);
  constexpr detail::Equation equation = detail::parse_equation(Formula.text);
  constexpr detail::Letters first = equation.operands[0], second = equation.operands[1], result = equation.result;
  if constexpr (equation.broken != nullptr || equation.count != 2) {
    detail::refuse_equation<2>(a.tracer, Formula.text, equation);
    return a;
  } else if constexpr (first.count != A::rank) {
    a.tracer->fail(rules::einsum_c6, detail::lettered(first, a).data());
    return a;
  } else if constexpr (second.count != B::rank) {
    a.tracer->fail(rules::einsum_c6, detail::lettered(second, b).data());
    return a;
  } else if constexpr (constexpr int letter = detail::find_differing(first, A::shape, second, B::shape); letter >= 0) {
    constexpr Dim here = A::shape[letter], there = B::shape[second.find(first.of[letter])];
    a.tracer->fail(
        rules::einsum_c7,
        Text().put(first.of + letter, first.of + letter + 1).put(" of ").put(here).put(" and ").put(there).data());
    return a;
  } else if constexpr (A::element != B::element || !floating(A::element)) {
    a.tracer->fail(rules::einsum_c8, detail::typed(a, b).data());
    return a;
  } else {
    constexpr auto left = detail::common(first, second.and_then(result));
    constexpr auto right = detail::common(second, first.and_then(result));
    return detail::contracted<left, right, result>(detail::summed_to<first, left>(a, site),
                                                   detail::summed_to<second, right>(b, site), site);
  }
}

/// More operands are products of products.
template <detail::Literal Formula, tensor A, tensor B, tensor C, tensor... More>
constexpr auto einsum(const A &a, const B &, const C &, const More &...) {
  detail::refuse<rules::einsum_c5, A, B, C, More...>();
  return a;
}

} // namespace kiln
