// SPDX-License-Identifier: Apache-2.0
//
// Calls of functions that the program defines and links, for computations that the language lacks (docs/custom.md).
#pragma once

#include <tuple>

#include "kiln/scan.h"

namespace kiln {

namespace detail {

template <tensor X> constexpr TensorType type_of() { return {X::element, {X::shape.begin(), X::shape.end()}}; }

constexpr void check_function(Tracer *tracer, const CustomFunction &function) {
  if (!is_identifier(function.name))
    tracer->fail(rules::custom_c1, function.name);
  if (!function.has_valid_workspace())
    tracer->fail(rules::custom_c4, function.workspace);
  if (function.has_derivative() &&
      (!is_identifier(function.derivative) || same_text(function.derivative, function.name)))
    tracer->fail(rules::custom_c5, function.derivative);
}

} // namespace detail

/// Facts of a custom function in addition to its types.
struct CustomOptions {
  Dim workspace = 0;                // bytes of memory that the function may use during a call
  const char *derivative = nullptr; // the name of the function that computes its vector-Jacobian product
};

/// The results of the C function NAME_custom_<Name>, which the program defines, for these operands: a tensor of the
/// only type in `Results`, or a std::tuple of tensors of these types.
template <detail::Literal Name, tensor... Results, tensor First, tensor... Rest>
constexpr auto custom(const CustomOptions &options, const First &first, const Rest &...rest) {
  static_assert(sizeof...(Results) > 0, "kiln: custom: no result; expected a tensor type or several [custom_c2]");
  Tracer *tracer = first.tracer;
  CustomFunction function{Name.text,
                          {detail::type_of<First>(), detail::type_of<Rest>()...},
                          {detail::type_of<Results>()...},
                          options.workspace,
                          or_empty(options.derivative)};
  detail::check_function(tracer, function);
  Attributes attributes;
  attributes.index = tracer->function(std::move(function));
  const int node = tracer->add({Op::custom, f32, {}, {first.node, rest.node...}, std::move(attributes)});
  (tracer->borrow(Results::shape), ...);
  int number = 0;
  const std::tuple<Results...> results{detail::result_of<Results>(tracer, node, number)...};
  if constexpr (sizeof...(Results) == 1)
    return std::get<0>(results);
  else
    return results;
}
template <detail::Literal Name, tensor... Results, tensor First, tensor... Rest>
constexpr auto custom(const First &first, const Rest &...rest) {
  return custom<Name, Results...>(CustomOptions(), first, rest...);
}

} // namespace kiln
