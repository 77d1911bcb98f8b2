// SPDX-License-Identifier: Apache-2.0
//
// Operations without tensor operands: parameters, constants, table rows, positions.
#pragma once

#include <initializer_list>
#include <iterator>

#include "kiln/elementwise.h"
#include "kiln/frequencies.h"
#include "kiln/movement.h"

namespace kiln {

namespace detail {
/// Checks that parameters, constants and states have fixed dimensions, since a caller does not supply any for them.
template <class Result> constexpr void check_fixed(Tracer *tracer) {
  for (const Dim &dim : Result::shape)
    if (!dim.fixed())
      tracer->fail(rules::tensor_c5, dim);
}
} // namespace detail

/// The parameter `leaf` of the layer that is being traced; `context` is any tensor of the trace. `Type` is an element
/// type or a storage format: with `kiln::int8` the tensor is f32. `initial` is the value that NAME_initialise_weights
/// sets.
template <WeightType Type, Dim... Extents>
constexpr Tensor<Type.element, Extents...> parameter(const tensor auto &context, const char *leaf,
                                                     const Initial &initial, Site site = Site::here()) {
  context.tracer->at(site);
  using Result = Tensor<Type.element, Extents...>;
  detail::check_fixed<Result>(context.tracer);
  return Result(context.tracer, context.tracer->parameter(or_empty(leaf), Type, Result::shape, initial));
}
template <WeightType Type, Dim... Extents>
constexpr Tensor<Type.element, Extents...> parameter(const tensor auto &context, const char *leaf,
                                                     Site site = Site::here()) {
  return parameter<Type, Extents...>(context, leaf, Initial(), site);
}

namespace detail {

/// The number of elements; 0 for an invalid shape.
template <class Result> constexpr std::int64_t fixed_count() {
  std::int64_t count = Result::sound ? 1 : 0;
  for (const Dim &dim : Result::shape)
    count *= dim.offset;
  return count;
}

template <class Result> constexpr Result constant(Tracer *tracer, std::vector<double> &&values, Site site) {
  tracer->at(site);
  check_fixed<Result>(tracer);
  tracer->declare(Result::shape);
  constexpr std::int64_t count = fixed_count<Result>();
  if (static_cast<std::int64_t>(values.size()) != count)
    tracer->fail(rules::constant_c1, static_cast<std::int64_t>(values.size()), count);
  for (double value : values)
    if (!holds(Result::element, value))
      tracer->fail(rules::constant_c2, value, Result::element);
  Attributes attributes;
  attributes.values = std::move(values);
  return emit<Result>(tracer, Op::constant, {}, std::move(attributes));
}

/// Numbers in a row, or rows of them: C arrays, std::array, std::vector, std::span.
template <class Values>
concept numbers = scalar<Values> || requires(const Values &values) {
  std::begin(values) != std::end(values);
  static_cast<double>(*std::begin(values));
} || requires(const Values &values) {
  std::begin(values) != std::end(values);
  std::begin(*std::begin(values)) != std::end(*std::begin(values));
};
constexpr void collect(std::vector<double> &into, const auto &values) {
  if constexpr (scalar<std::remove_cvref_t<decltype(values)>>)
    into.push_back(static_cast<double>(values));
  else
    for (const auto &value : values)
      collect(into, value);
}

/// Evaluates the function at each index of the shape, in order.
template <class Result, std::size_t... Axis>
constexpr std::vector<double> computed(const auto &function, std::index_sequence<Axis...>) {
  std::vector<double> values;
  std::int64_t at[sizeof...(Axis) + 1]{};
  for (std::int64_t i = 0; i < fixed_count<Result>(); ++i) {
    values.push_back(static_cast<double>(function(at[Axis]...)));
    for (int axis = Result::rank - 1; axis >= 0; --axis) {
      if (++at[axis] < Result::shape[axis].offset)
        break;
      at[axis] = 0;
    }
  }
  return values;
}
template <class Function, std::size_t... Axis> constexpr bool takes_indices(std::index_sequence<Axis...>) {
  return std::is_invocable_v<const Function &, decltype(static_cast<std::int64_t>(Axis))...>;
}

} // namespace detail

/// A constant of this shape, row-major; `context` is any tensor of the trace.
template <ElementType E, Dim... Extents>
constexpr auto constant(const tensor auto &context, std::initializer_list<double> values, Site site = Site::here()) {
  return detail::constant<Tensor<E, Extents...>>(context.tracer, std::vector<double>(values), site);
}
/// A constant from an array, or from an array of arrays, which contains the elements row by row.
template <ElementType E, Dim... Extents, class Values>
  requires(detail::numbers<Values> && !scalar<Values>)
constexpr auto constant(const tensor auto &context, const Values &values, Site site = Site::here()) {
  std::vector<double> all;
  detail::collect(all, values);
  return detail::constant<Tensor<E, Extents...>>(context.tracer, std::move(all), site);
}
/// A constant from a constexpr function: element [i, j] is function(i, j).
template <ElementType E, Dim... Extents, class Function>
  requires(detail::takes_indices<Function>(std::make_index_sequence<sizeof...(Extents)>()))
constexpr auto constant(const tensor auto &context, const Function &function, Site site = Site::here()) {
  using Result = Tensor<E, Extents...>;
  return detail::constant<Result>(context.tracer,
                                  detail::computed<Result>(function, std::make_index_sequence<Result::rank>()), site);
}

/// Rows of `table` [V, D] at i32 `indices` [...]: [..., D].
template <tensor I, tensor Table>
constexpr auto embedding(const I &indices, const Table &table, Site site = Site::here()) {
  Tracer *tracer = indices.tracer;
  tracer->at(site);
  if constexpr (I::element != i32)
    tracer->fail(rules::embedding_c1, detail::typed(indices).data());
  if constexpr (Table::rank != 2)
    tracer->fail(rules::embedding_c2, detail::typed(table).data());
  if constexpr (!floating(Table::element))
    tracer->fail(rules::embedding_c4, detail::typed(table).data());
  int source = indices.node;
  if (tracer->node(source).attributes.at_end)
    source = tracer->node(source).operands[0]; // the last ones of a range of positions
  const Node &positions = tracer->node(source);
  if (positions.op == Op::positions && !detail::at_least(Table::shape[0], positions.shape[0]))
    tracer->fail(rules::embedding_c3, Table::shape[0], positions.shape[0]);
  constexpr auto shape = detail::appended(I::shape, detail::last(Table::shape));
  return detail::emit<TensorOf<Table::element, shape>>(tracer, Op::embedding, {indices.node, table.node});
}

/// 0, 1, 2, ... along an axis of `x`: i32 [size of the axis].
template <int Axis = -1, tensor X> constexpr auto positions(const X &x, Site site = Site::here()) {
  x.tracer->at(site);
  auto attributes = detail::along<Axis>(x, rules::positions_c1);
  constexpr Dim extent = X::rank == 0 ? Dim(1) : X::shape[detail::normal_axis(Axis, X::rank)];
  return detail::emit<Tensor<i32, extent>>(x.tracer, Op::positions, {x.node}, std::move(attributes));
}

/// 0, 1, 2, ..., Extent - 1: i32 [Extent]; `context` is any tensor of the trace.
template <Dim Extent> constexpr auto arange(const tensor auto &context, Site site = Site::here()) {
  return positions<0>(zeros<i32, Extent>(context, site), site);
}

/// The positions of an axis of `x` whose elements are the last of `Whole`: i32 [n] = Whole - n, ..., Whole - 1.
template <Dim Whole, int Axis = -1, tensor X> constexpr auto positions_in(const X &x, Site site = Site::here()) {
  constexpr Dim extent = X::rank == 0 ? Dim(1) : X::shape[detail::normal_axis(Axis, X::rank)];
  return last<0, extent>(arange<Whole>(x, site), site);
}

namespace detail {

/// Checks positions and width, and traces the encoding: positions [...] -> [..., Width], without their first axis if
/// pairs have their own axes.
template <std::int64_t Width, bool HasAxes, tensor P>
constexpr auto sinusoidal(const P &positions, Attributes &&attributes) {
  if constexpr (P::rank < (HasAxes ? 2 : 1) || (P::element != i32 && P::element != f32)) {
    positions.tracer->fail(rules::sinusoidal_c1, typed(positions).data());
    return emit<TensorOf<f32, Shape<2>{{Dim(1), Dim(Width)}}>>(positions.tracer, Op::sinusoidal, {positions.node},
                                                               std::move(attributes));
  } else {
    if constexpr (Width % 2 != 0 || Width < 2)
      positions.tracer->fail(rules::sinusoidal_c2, Width);
    constexpr auto places = [] {
      if constexpr (HasAxes)
        return without_axis(P::shape, 0);
      else
        return P::shape;
    }();
    return emit<TensorOf<f32, appended(places, Width)>>(positions.tracer, Op::sinusoidal, {positions.node},
                                                        std::move(attributes));
  }
}

} // namespace detail

/// Sinusoidal position encoding of i32 or f32 positions [...] (Vaswani et al. 2017, section 3.5): f32 [..., Width].
template <std::int64_t Width, tensor P>
constexpr auto sinusoidal(const P &positions, double base = 10000, Site site = Site::here()) {
  positions.tracer->at(site);
  if (!(base > 1))
    positions.tracer->fail(rules::sinusoidal_c3, base);
  Attributes attributes;
  attributes.base = base;
  return detail::sinusoidal<Width, false>(positions, std::move(attributes));
}

/// The same with a frequency for each pair, whose sines and cosines are multiplied by the amplitude. With several axes,
/// positions are [Axes, ...], and each pair reads those of its own axis.
template <tensor P, std::int64_t Width, int Axes>
constexpr auto sinusoidal(const P &positions, const Frequencies<Width, Axes> &frequencies, Site site = Site::here()) {
  positions.tracer->at(site);
  Attributes attributes;
  for (double value : frequencies.values) {
    if (!(value >= 0 && value <= largest_frequency))
      positions.tracer->fail(rules::sinusoidal_c4, value);
    attributes.values.push_back(value);
  }
  if constexpr (Axes > 1) {
    if constexpr (P::rank >= 2)
      if constexpr (P::shape[0] != Dim(Axes))
        positions.tracer->fail(rules::sinusoidal_c5, P::shape[0], Dim(Axes));
    for (int axis : frequencies.axes) {
      if (axis < 0 || axis >= Axes)
        positions.tracer->fail(rules::sinusoidal_c6, axis);
      attributes.pair_axes.push_back(axis);
    }
  }
  auto angles = detail::sinusoidal<Width, (Axes > 1)>(positions, std::move(attributes));
  return frequencies.amplitude == 1 ? angles : mul(angles, frequencies.amplitude, site);
}

} // namespace kiln
