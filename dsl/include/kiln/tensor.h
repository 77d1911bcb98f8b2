// SPDX-License-Identifier: Apache-2.0
//
// The handle of a value in a trace. Its type carries the element type and the shape, so a model's functions read like
// mathematics and their signatures are checked.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "kiln/trace.h"

namespace kiln {

using enum ElementType; // kiln::f32

/// A value of a trace: `Tensor<kiln::f32, T, 768>`. Copies refer to the same value.
template <ElementType E, Dim... Ds> struct Tensor {
  static constexpr ElementType element = E;
  static constexpr int rank = sizeof...(Ds);
  static constexpr Shape<sizeof...(Ds)> shape{{Ds...}};
  static constexpr bool sound = detail::sound(shape);

  Tracer *tracer;
  int node;

  constexpr Tensor(Tracer *tracer, int node) : tracer(tracer), node(node) {}
  /// Passing a tensor of another type is a mistake that names both (tensor_c2).
  template <ElementType E2, Dim... D2s>
  constexpr Tensor(const Tensor<E2, D2s...> &other) : tracer(other.tracer), node(other.node) {
    Text got, expected;
    got.put(E2).put(other.shape);
    expected.put(E).put(shape);
    tracer->fail(rules::tensor_c2, got.data(), expected.data());
  }
};

namespace detail {
template <ElementType E, Dim... Ds> constexpr std::true_type is_tensor(const Tensor<E, Ds...> *);
constexpr std::false_type is_tensor(const void *);

template <ElementType E, auto Extents, class = std::make_index_sequence<Extents.size()>> struct Expand;
template <ElementType E, auto Extents, std::size_t... I> struct Expand<E, Extents, std::index_sequence<I...>> {
  using type = Tensor<E, Extents[I]...>;
};
} // namespace detail

/// Any Tensor.
template <class X>
concept tensor = decltype(detail::is_tensor(static_cast<const X *>(nullptr)))::value;
/// A plain number.
template <class X>
concept scalar = std::is_arithmetic_v<X>;

/// The Tensor whose extents are the elements of a Shape.
template <ElementType E, auto Extents> using TensorOf = typename detail::Expand<E, Extents>::type;

} // namespace kiln
