// SPDX-License-Identifier: Apache-2.0
//
// A string that a constant expression can build (libstdc++ 12 has no constexpr std::string), and how the values of a
// message print: "768", "tokens 1..1024", "2*batch*tokens+1", "f32[tokens 1..1024, 768]".
#pragma once

#include <cstddef>

#include "kiln/graph.h"

namespace kiln {

namespace detail {

/// A text as a template argument.
template <std::size_t Size> struct Literal {
  char text[Size]{};

  consteval Literal(const char (&from)[Size]) {
    for (std::size_t i = 0; i < Size; ++i)
      text[i] = from[i];
  }
};

} // namespace detail

/// At most 1023 characters; the rest is dropped.
class Text {
public:
  constexpr Text &put(const char *text) {
    for (; *text; ++text)
      put_char(*text);
    return *this;
  }
  /// Prints the characters of [text, end).
  constexpr Text &put(const char *text, const char *end) {
    for (; text != end; ++text)
      put_char(*text);
    return *this;
  }
  constexpr Text &put(std::int64_t number) {
    char digits[20];
    int count = 0;
    bool negative = number < 0;
    do {
      int digit = static_cast<int>(number % 10);
      digits[count++] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
      number /= 10;
    } while (number != 0);
    if (negative)
      put_char('-');
    while (count > 0)
      put_char(digits[--count]);
    return *this;
  }
  constexpr Text &put(int number) { return put(static_cast<std::int64_t>(number)); }
  /// Prints six decimals.
  constexpr Text &put(double number) {
    bool negative = number < 0;
    double size = negative ? -number : number;
    if (!(size < 1e12))
      return put("a number out of range");
    auto millionths = static_cast<std::int64_t>(size * 1e6 + 0.5);
    if (negative)
      put_char('-');
    put(millionths / 1000000).put_char('.');
    for (std::int64_t place = 100000; place > 0; place /= 10)
      put_char(static_cast<char>('0' + millionths / place % 10));
    return *this;
  }
  constexpr Text &put(ElementType element) { return put(name_of(element)); }
  constexpr Text &put(const Dim &dim) {
    if (dim.flaw != Flaw::none)
      return put_flawed(dim);
    if (dim.fixed())
      return put(dim.offset);
    put_term(dim.factor, dim.symbols);
    if (dim.second != 0)
      put(dim.second > 0 ? "+" : "").put_term(dim.second, dim.symbols + 2);
    if (dim.offset != 0)
      put(dim.offset > 0 ? "+" : "").put(dim.offset);
    return put(" ").put(dim.min()).put("..").put(dim.max());
  }
  /// Prints any list of Dims or numbers: "[2, 3]".
  template <class List>
    requires requires(const List &list) { list.begin() != list.end(); }
  constexpr Text &put(const List &list) {
    put("[");
    const char *separator = "";
    for (const auto &item : list) {
      put(separator).put(item);
      separator = ", ";
    }
    return put("]");
  }

  constexpr const char *data() const { return characters; }
  constexpr std::size_t size() const { return length; }
  constexpr bool empty() const { return length == 0; }

private:
  /// Prints an invalid dimension: "tokens 8..1", "batch and source", "context from 1", "4000000000".
  constexpr Text &put_flawed(const Dim &dim) {
    const Symbol &first = dim.symbols[0];
    for (const Symbol &symbol : dim.symbols)
      put(symbol.present() && &symbol != &first ? " and " : "").put(symbol.name);
    if (!first.present())
      return put(first.max);
    if (!dim.symbols[1].present())
      put(" ").put(first.min).put("..").put(first.max);
    return *this;
  }

  /// Prints a multiple of one or two symbols.
  constexpr Text &put_term(std::int64_t factor, const Symbol *symbols) {
    if (factor != 1)
      put(factor).put("*");
    put(symbols[0].name);
    return symbols[1].present() ? put("*").put(symbols[1].name) : *this;
  }

  constexpr void put_char(char c) {
    if (length + 1 < sizeof(characters))
      characters[length++] = c;
  }

  char characters[1024]{};
  std::size_t length = 0;
};

} // namespace kiln
