// SPDX-License-Identifier: Apache-2.0
//
// A loop over time: the body is traced once, on a slice of the sequences and the state of the previous iteration.
#pragma once

#include <tuple>

#include "kiln/elementwise.h"

namespace kiln {

enum class Direction { forward, reverse };

namespace detail {

/// One tensor, or a tuple of tensors.
template <class X> inline constexpr bool tensors = tensor<X>;
template <class... X> inline constexpr bool tensors<std::tuple<X...>> = (tensor<X> && ...);

template <class X> constexpr auto as_tuple(const X &x) {
  if constexpr (tensor<X>)
    return std::tuple{x};
  else
    return x;
}
/// Returns the only tensor of the tuple if `Like` is a tensor, otherwise the tuple.
template <class Like, class Tuple> constexpr auto as_given(const Tuple &tuple) {
  if constexpr (tensor<Like>)
    return std::get<0>(tuple);
  else
    return tuple;
}
/// Applies the function to each element in order, and returns the tuple of the results.
template <class Function, class Tuple> constexpr auto transformed(Function &&function, const Tuple &tuple) {
  return std::apply([&](const auto &...x) { return std::tuple<decltype(function(x))...>{function(x)...}; }, tuple);
}

template <class Result> constexpr Result result_of(Tracer *tracer, int scan, int &number) {
  Attributes attributes;
  attributes.index = number++;
  return emit<Result>(tracer, Op::result, {scan}, std::move(attributes));
}

template <class X> inline constexpr bool is_pair = false;
template <class First, class Second>
inline constexpr bool is_pair<std::pair<First, Second>> = tensors<First> && tensors<Second>;

template <class... X> constexpr Text typed(const std::tuple<X...> &tuple) {
  if constexpr (sizeof...(X) == 0)
    return Text().put("no tensor");
  else
    return std::apply([](const auto &...x) { return typed(x...); }, tuple);
}

template <tensor X> constexpr auto slice_argument(const X &x) {
  using Slice = TensorOf<X::element, without_axis(X::shape, 0)>;
  return Slice(x.tracer, x.tracer->argument(X::element, {Slice::shape.begin(), Slice::shape.end()}));
}
template <tensor X> constexpr X state_argument(const X &x) {
  return X(x.tracer, x.tracer->argument(X::element, {X::shape.begin(), X::shape.end()}));
}

/// Traces a scan. `EndsEarly`: iterations after one whose first state is true change no state and give zeros.
template <Direction D, bool EndsEarly, class State, class Sequences, class Step>
constexpr auto trace_scan(const State &initial, const Sequences &xs, Step &&step, Site site) {
  static_assert(tensors<State> && tensors<Sequences> && !std::is_same_v<Sequences, std::tuple<>>,
                "kiln: scan: no sequence, or a state that is no tensor; expected tensors as its state and at least one "
                "sequence [scan_c3]");
  auto states = as_tuple(initial);
  auto sequences = as_tuple(xs);
  Tracer *tracer = std::get<0>(sequences).tracer;
  tracer->at(site);
  using First = std::tuple_element_t<0, decltype(sequences)>;
  auto check = [&](const auto &x) {
    using X = std::remove_cvref_t<decltype(x)>;
    if constexpr (X::rank < 1 || first(X::shape) != first(First::shape))
      tracer->fail(rules::scan_c1, typed(sequences).data());
    return x.node;
  };
  transformed(check, sequences);

  Attributes attributes;
  attributes.index = tracer->open();
  attributes.states = std::tuple_size_v<decltype(states)>;
  attributes.reverse = D == Direction::reverse;
  attributes.until = EndsEarly;
  auto carried = transformed([](const auto &x) { return state_argument(x); }, states);
  auto slices = transformed([](const auto &x) { return slice_argument(x); }, sequences);
  auto stepped = step(as_given<State>(carried), as_given<Sequences>(slices));
  static_assert(is_pair<decltype(stepped)>, "kiln: scan: wrong result of the step; expected a std::pair of the "
                                            "next state and the outputs, tensors or tuples of them [scan_c4]");
  auto next = as_tuple(stepped.first);
  auto outputs = as_tuple(stepped.second);
  if constexpr (!std::is_same_v<decltype(next), decltype(carried)>)
    tracer->fail(rules::scan_c2, typed(next).data(), typed(carried).data());
  auto give = [&](const auto &x) {
    tracer->result(x.node);
    return x.node;
  };
  transformed(give, next);
  transformed(give, outputs);
  tracer->close();

  std::vector<int> operands;
  auto take = [&](const auto &x) {
    operands.push_back(x.node);
    return x.node;
  };
  transformed(take, states);
  transformed(take, sequences);
  int node = tracer->add({Op::scan, f32, {}, std::move(operands), std::move(attributes)});
  int number = 0;
  auto last = transformed([&]<tensor X>(const X &) { return result_of<X>(tracer, node, number); }, states);
  auto stack = [&]<tensor X>(const X &) {
    using Stacked = TensorOf<X::element, prepended(first(First::shape), X::shape)>;
    return result_of<Stacked>(tracer, node, number);
  };
  auto stacked = transformed(stack, outputs);
  return std::pair{as_given<State>(last), as_given<decltype(stepped.second)>(stacked)};
}

} // namespace detail

/// Runs `step(state, x)` for every index of the first axis of the sequences `xs`: x is the slice at the index; the
/// state is `initial` at first, then the one that the previous step returned. The step returns a std::pair of the next
/// state and the outputs. The result is a pair of the last state and the outputs, stacked along a new first axis.
///
/// The state, the sequences and the outputs are each a tensor or a std::tuple of tensors. `Direction::reverse` iterates
/// from the last index to the first. Compute a projection of all steps before the loop, where it is one GEMM.
template <Direction D = Direction::forward, class State, class Sequences, class Step>
constexpr auto scan(const State &initial, const Sequences &xs, Step &&step, Site site = Site::here()) {
  return detail::trace_scan<D, false>(initial, xs, step, site);
}

} // namespace kiln
