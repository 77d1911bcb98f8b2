// SPDX-License-Identifier: Apache-2.0
//
// A scan that ends early: a decoder that has written its last token, a solver that has converged. It is a scan with two
// more states, whether it has ended and how many iterations it ran, in which iterations after the end change nothing.
// Where host code can read a state it leaves the loop; elsewhere (GPUs, gradients) the other iterations run in vain.
#pragma once

#include "kiln/movement.h"
#include "kiln/scan.h"

namespace kiln {

namespace detail {

template <class Made> inline constexpr bool is_ending_step = false;
template <class Next, class Outputs, class Ends>
inline constexpr bool is_ending_step<std::tuple<Next, Outputs, Ends>> =
    tensors<Next> && tensors<Outputs> && tensor<Ends>;

/// Returns the elements from the second on.
template <class Tuple> constexpr auto without_first_two(const Tuple &tuple) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<std::tuple_element_t<I + 2, Tuple>...>{std::get<I + 2>(tuple)...};
  }(std::make_index_sequence<std::tuple_size_v<Tuple> - 2>());
}
/// Returns the old values where the loop has ended, otherwise the next ones.
template <class Ended, class... X>
constexpr auto unless_ended(const Ended &ended, const std::tuple<X...> &old, const std::tuple<X...> &next, Site site) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<X...>{where(ended, std::get<I>(old), std::get<I>(next), site)...};
  }(std::index_sequence_for<X...>());
}

} // namespace detail

/// A scan whose step returns a std::tuple of the next state, of the outputs and of whether the loop ends, a boolean
/// scalar. The iteration that ends it counts; the outputs of later iterations are zeros. The result is a std::tuple of
/// the last state, of the outputs, stacked along a new first axis of the sequences' length, and of the number of
/// iterations, an i32 scalar.
template <class State, class Sequences, class Step>
constexpr auto scan_until(const State &initial, const Sequences &xs, Step &&step, Site site = Site::here()) {
  static_assert(detail::tensors<State> && detail::tensors<Sequences> && !std::is_same_v<Sequences, std::tuple<>>,
                "kiln: scan: no sequence, or a state that is no tensor; expected tensors as its state and at least one "
                "sequence [scan_c3]");
  Tracer *tracer = std::get<0>(detail::as_tuple(xs)).tracer;
  tracer->at(site);
  auto body = [&](const auto &carried, const auto &here) {
    const auto ended = std::get<0>(carried);
    const auto old = detail::without_first_two(carried);
    const auto made = step(detail::as_given<State>(old), here);
    static_assert(detail::is_ending_step<std::remove_const_t<decltype(made)>>,
                  "kiln: scan_until: wrong result of the step; expected a std::tuple of the next state, of the outputs "
                  "and of a boolean tensor [scan_until_c1]");
    using Ends = std::remove_cvref_t<decltype(std::get<2>(made))>;
    if constexpr (Ends::rank != 0 || Ends::element != boolean)
      tracer->fail(rules::scan_until_c2, detail::typed(std::get<2>(made)).data());
    const auto next = detail::as_tuple(std::get<0>(made));
    const auto fitting = [&] { // the next states, or the present ones after a mistake
      if constexpr (std::is_same_v<decltype(next), decltype(old)>)
        return next;
      else
        return old;
    }();
    if constexpr (!std::is_same_v<decltype(next), decltype(old)>)
      tracer->fail(rules::scan_c2, detail::typed(next).data(), detail::typed(old).data());
    const auto ends = [&] {
      if constexpr (Ends::rank != 0 || Ends::element != boolean)
        return ended;
      else
        return logical_or(ended, std::get<2>(made), site);
    }();
    const auto steps = add(std::get<1>(carried), where(ended, 0, detail::number<i32>(tracer, 1), site), site);
    const auto kept = detail::unless_ended(ended, old, fitting, site);
    const auto outputs = detail::transformed(
        [&]<tensor X>(const X &x) { return where(ended, detail::number<X::element>(tracer, 0), x, site); },
        detail::as_tuple(std::get<1>(made)));
    using Outputs = std::remove_cvref_t<decltype(std::get<1>(made))>;
    return std::pair{std::tuple_cat(std::tuple{ends, steps}, kept), detail::as_given<Outputs>(outputs)};
  };
  const auto states = std::tuple_cat(std::tuple{detail::number<boolean>(tracer, 0), detail::number<i32>(tracer, 0)},
                                     detail::as_tuple(initial));
  const auto made = detail::trace_scan<Direction::forward, true>(states, xs, body, site);
  return std::tuple{detail::as_given<State>(detail::without_first_two(made.first)), made.second,
                    std::get<1>(made.first)};
}

} // namespace kiln
