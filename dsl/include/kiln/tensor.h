// SPDX-License-Identifier: Apache-2.0
//
// The handle of a value in a trace. Its type carries the element type and the shape, so a model's functions read like
// mathematics and their signatures are checked.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "kiln/refusal.h"
#include "kiln/trace.h"

namespace kiln {

using enum ElementType; // kiln::f32

template <ElementType E, Dim... Ds> struct Tensor;

namespace detail {
template <ElementType E, Dim... Ds> constexpr std::true_type is_tensor(const Tensor<E, Ds...> *);
constexpr std::false_type is_tensor(const void *);
} // namespace detail

/// Any Tensor.
template <class X>
concept tensor = decltype(detail::is_tensor(static_cast<const X *>(nullptr)))::value;
/// A plain number.
template <class X>
concept scalar = std::is_arithmetic_v<X>;

namespace detail {

/// A tensor operand with the line of the operator. An operator has no default arguments, but this conversion has one.
template <class Reference> struct Located {
  Reference x;
  Site site;

  constexpr Located(Reference x, Site site = Site::here()) : x(x), site(site) {}
};

/// Returns the operand of an operator. If the operand is invalid, returns another tensor, so that there is only one
/// error.
template <class B, class Other> constexpr auto operand(const Other &other, const B &b) {
  if constexpr (tensor<B> || scalar<B>) {
    return b;
  } else {
    refuse<rules::broadcast_c4, Other, B>();
    return other;
  }
}

} // namespace detail

/// A value of a trace: `Tensor<kiln::f32, T, 768>`. Copies refer to the same value.
template <ElementType E, Dim... Ds> struct Tensor {
  static constexpr ElementType element = E;
  static constexpr int rank = sizeof...(Ds);
  static constexpr Shape<sizeof...(Ds)> shape{{Ds...}};
  static constexpr bool sound = detail::sound(shape);

  Tracer *tracer;
  int node;

  constexpr Tensor(Tracer *tracer, int node) : tracer(tracer), node(node) {}
  /// Passing a tensor of another type is an error that names both types (tensor_c2).
  template <ElementType E2, Dim... D2s>
  constexpr Tensor(const Tensor<E2, D2s...> &other) : tracer(other.tracer), node(other.node) {
    Text got, expected;
    got.put(E2).put(other.shape);
    expected.put(E).put(shape);
    tracer->fail(rules::tensor_c2, got.data(), expected.data());
  }

  // C++ syntax that a trace cannot support: `if (x)`, `!x`, `x ? a : b`, `x[0]`, and below `x && y`.
#define KILN_NO_CONDITION                                                                                              \
  "kiln: condition: a tensor has no value while the model is traced; expected kiln::where, kiln::logical_and, "        \
  "logical_or or logical_not [tensor_c6]"
  template <std::same_as<bool> Bool> constexpr explicit operator Bool() const {
    static_assert(detail::never<Bool>, KILN_NO_CONDITION);
    return false;
  }
  template <class Index> constexpr Tensor operator[](const Index &) const {
    static_assert(detail::never<Index>, "kiln: operator []: a tensor is no array; expected kiln::slice, kiln::last or "
                                        "kiln::gather [tensor_c7]");
    return *this;
  }

  // The operators are friends, so that an operand of exactly this type is converted to its Located form; a template
  // that deduces both operands would not know the line.
#define KILN_OPERATOR(symbol, function)                                                                                \
  template <class B> friend constexpr auto operator symbol(detail::Located<const Tensor &> a, const B &b) {            \
    return function(a.x, detail::operand<B>(a.x, b), a.site);                                                          \
  }                                                                                                                    \
  template <class A>                                                                                                   \
    requires(!tensor<A>)                                                                                               \
  friend constexpr auto operator symbol(const A &a, detail::Located<const Tensor &> b) {                               \
    return function(detail::operand<A>(b.x, a), b.x, b.site);                                                          \
  }
  KILN_OPERATOR(+, add)
  KILN_OPERATOR(-, sub)
  KILN_OPERATOR(*, mul)
  KILN_OPERATOR(/, div)
  KILN_OPERATOR(<, less)
  KILN_OPERATOR(<=, less_equal)
  KILN_OPERATOR(>, greater)
  KILN_OPERATOR(>=, greater_equal)
#undef KILN_OPERATOR
#define KILN_ASSIGNMENT(symbol, function)                                                                              \
  template <class B> friend constexpr Tensor &operator symbol(detail::Located<Tensor &> a, const B &b) {               \
    return a.x = function(a.x, detail::operand<B>(a.x, b), a.site);                                                    \
  }
  KILN_ASSIGNMENT(+=, add)
  KILN_ASSIGNMENT(-=, sub)
  KILN_ASSIGNMENT(*=, mul)
  KILN_ASSIGNMENT(/=, div)
#undef KILN_ASSIGNMENT
  // Without these operators, g++ takes `x && y` for a bool and first reports the call that has it as an argument.
#define KILN_NO_OPERATOR(symbol)                                                                                       \
  template <class B> friend constexpr Tensor operator symbol(const Tensor &a, const B &) {                             \
    static_assert(detail::never<B>, KILN_NO_CONDITION);                                                                \
    return a;                                                                                                          \
  }                                                                                                                    \
  template <class A>                                                                                                   \
    requires(!tensor<A>)                                                                                               \
  friend constexpr Tensor operator symbol(const A &, const Tensor &b) {                                                \
    static_assert(detail::never<A>, KILN_NO_CONDITION);                                                                \
    return b;                                                                                                          \
  }
  KILN_NO_OPERATOR(&&)
  KILN_NO_OPERATOR(||)
#undef KILN_NO_OPERATOR
#undef KILN_NO_CONDITION
  friend constexpr auto operator-(detail::Located<const Tensor &> x) { return mul(x.x, -1, x.site); }
  friend constexpr Tensor operator+(detail::Located<const Tensor &> x) { return x.x; }
};

namespace detail {

template <ElementType E, auto Extents, class = std::make_index_sequence<Extents.size()>> struct Expand;
template <ElementType E, auto Extents, std::size_t... I> struct Expand<E, Extents, std::index_sequence<I...>> {
  using type = Tensor<E, Extents[I]...>;
};

} // namespace detail

/// The Tensor type with this Shape.
template <ElementType E, auto Extents> using TensorOf = typename detail::Expand<E, Extents>::type;

} // namespace kiln
