// SPDX-License-Identifier: Apache-2.0
// Compile errors whose text is computed, for invalid models and for calls that no function of the language accepts,
// where the compiler's own message would be a list of templates. `kiln compile` reads these texts in the compiler's
// output.
#pragma once

#include <concepts>
#include <tuple>

#include "kiln/rules.h"
#include "kiln/text.h"

namespace kiln {

class Named;

/// The text of an error as a template argument, which g++ prints.
template <std::size_t Size> struct Message {
  char text[Size + 1]{};

  constexpr const char *data() const { return text; }
  constexpr std::size_t size() const { return Size; }
};

namespace error {

template <Message Text> inline constexpr bool none = Text.size() == 0;

/// The text as single characters, the only form of a template argument that clang before 20 prints completely.
template <char... Letters> struct Spelled {
  static_assert(sizeof...(Letters) == 0, "kiln: the model breaks a rule; the next note spells it");
  static constexpr bool passed = true;
};

/// Instantiating this template is the error, unless the text is empty.
template <Message Text> struct Refusal {
#if __cpp_static_assert >= 202306L
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
#endif
  static_assert(none<Text>, Text);
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#elif defined(__clang__)
  template <std::size_t... I> static constexpr auto spell(std::index_sequence<I...>) -> Spelled<Text.text[I]...>;
  static_assert(decltype(spell(std::make_index_sequence<Text.size()>()))::passed);
#else
  static_assert(none<Text>, "kiln: the model breaks a rule; the next line quotes it");
#endif
  static constexpr bool passed = true;
};

} // namespace error

namespace detail {

/// False, but dependent, so that an assertion fails only when its template is instantiated.
template <class...> inline constexpr bool never = false;

template <std::size_t Size> constexpr Message<Size> as_message(const Text &text) {
  Message<Size> copy;
  for (std::size_t i = 0; i < Size; ++i)
    copy.text[i] = text.data()[i];
  return copy;
}

/// Describes a C++ type in the terms of the language: "f32[tokens 1..64, 8]", "a number", "a layer".
template <class X> constexpr Text described() {
  Text text;
  if constexpr (requires { X::element, X::rank, X::sound; })
    return text.put(X::element).put(X::shape);
  else if constexpr (std::is_arithmetic_v<X>)
    return text.put("a number");
  else if constexpr (std::is_convertible_v<const X &, const char *>)
    return text.put("a text");
  else if constexpr (std::is_array_v<X> || std::is_pointer_v<X> || requires(const X &x) { x.begin() != x.end(); })
    return text.put("an array of numbers");
  else if constexpr (requires(const X &x) { x.outputs, x.last; })
    return text.put("the outputs and the last state of a recurrent layer");
  else if constexpr (requires { std::tuple_size<X>::value; })
    return text.put(static_cast<int>(std::tuple_size_v<X>)).put(" values");
  else if constexpr (std::is_same_v<X, Dim>)
    return text.put("a dimension");
  else if constexpr (std::is_base_of_v<Named, X>)
    return text.put("a layer");
  else if constexpr (requires(const X &x) { x.causal; })
    return text.put("options of attention");
  else
    return text.put("a value of another type");
}

/// "RULE, got f32[4, 8] and a number [LABEL]", for arguments of these types.
template <const char *const &Rule, class... Given> constexpr Text refusal_text() {
  Text text;
  text.put(Rule, rules::label_of(Rule)).put(rules::states_expected(Rule) ? ", got " : "; got ");
  if constexpr (sizeof...(Given) == 0)
    text.put("nothing");
  const char *separator = "";
  ((text.put(separator).put(described<Given>().data()), separator = " and "), ...);
  return text.put(rules::label_of(Rule));
}

/// Stops the compilation with the rule and the argument types. The error's location is the call that led here.
template <const char *const &Rule, class... Given> constexpr void refuse() {
  constexpr Text text = refusal_text<Rule, Given...>();
  static_assert(error::Refusal<as_message<text.size()>(text)>::passed);
}

} // namespace detail
} // namespace kiln
