// SPDX-License-Identifier: Apache-2.0
//
// The part of NAME.hpp that is the same for all models: views of tensors, and the check of a call's arguments.
#include "compiler/library/CxxText.h"

namespace kiln {

const char *const cxxViewText = R"(#ifndef KILN_VIEW_HPP
#define KILN_VIEW_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L || (defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#include <span> // callers may pass std::span
#endif

namespace kiln {

/// Marks a dynamic dimension, whose size is known only at run time.
KILN_HIDDEN inline constexpr std::int64_t dynamic = -1;

/// Elements that the span does not own, like std::span of C++20. It is made from a pointer and a number, or implicitly
/// from any range with data() and size(), such as a vector, an array or a std::span. It is the same type in C++17 and
/// C++20, so that a program may mix files of both.
template <class T> class Span {
  /// A temporary is const here, so that a temporary vector has no mutable elements, but a temporary span has.
  template <class Source>
  using Kept = std::conditional_t<std::is_lvalue_reference_v<Source>, Source, const Source &>;
  template <class Source> using Elements = std::remove_pointer_t<decltype(std::data(std::declval<Kept<Source>>()))> (*)[];
  template <class Source, class = void> struct IsRange : std::false_type {};
  template <class Source>
  struct IsRange<Source, std::void_t<Elements<Source>, decltype(std::size(std::declval<Kept<Source>>())),
                                     decltype(std::begin(std::declval<Kept<Source>>()))>>
      : std::is_convertible<Elements<Source>, T (*)[]> {};

public:
  constexpr Span() = default;
  constexpr Span(T *data, std::size_t size) : elements(data), count(size) {}
  template <class Range, std::enable_if_t<IsRange<Range>::value, int> = 0>
  constexpr Span(Range &&range) : elements(std::data(range)), count(static_cast<std::size_t>(std::size(range))) {}

  constexpr T *data() const { return elements; }
  constexpr std::size_t size() const { return count; }
  constexpr T *begin() const { return elements; }
  constexpr T *end() const { return elements + count; }
  constexpr T &operator[](std::size_t index) const { return elements[index]; }

private:
  T *elements = nullptr;
  std::size_t count = 0;
};

/// A dense row-major tensor that the view does not own. Fixed dimensions are part of the type. The sizes of dynamic
/// dimensions follow, in order, after a pointer or a range of elements: a Span, a vector, an array. A single dynamic
/// dimension of a range can be omitted: it follows from the number of elements. A call rejects a range whose number of
/// elements differs from the tensor's, but an array may be longer unless its dynamic dimension is omitted.
template <class T, std::int64_t... Extents> class View {
  template <class Source>
  static constexpr bool isRange = std::is_convertible_v<Source &&, Span<T>>;

public:
  KILN_HIDDEN static constexpr std::size_t rank = sizeof...(Extents);
  KILN_HIDDEN static constexpr std::size_t dynamicRank = (std::size_t(Extents == dynamic) + ... + 0);

  /// Makes an empty view, which a call rejects.
  constexpr View() = default;

  template <class Pointer, class... Sizes,
            std::enable_if_t<sizeof...(Sizes) == dynamicRank && !isRange<Pointer> &&
                                 std::is_convertible_v<Pointer &&, T *>,
                             int> = 0>
  constexpr View(Pointer &&data, Sizes... sizes) : elements(data) {
    give(std::array<std::int64_t, dynamicRank>{static_cast<std::int64_t>(sizes)...});
  }

  template <class Range, class... Sizes,
            std::enable_if_t<isRange<Range> && (sizeof...(Sizes) == dynamicRank ||
                                                (sizeof...(Sizes) == 0 && dynamicRank == 1)),
                             int> = 0>
  constexpr View(Range &&range, Sizes... sizes) {
    const Span<T> data(static_cast<Range &&>(range));
    elements = data.data();
    given = static_cast<std::int64_t>(data.size());
    isRoom = std::is_array_v<std::remove_reference_t<Range>> && sizeof...(Sizes) == dynamicRank;
    if constexpr (sizeof...(Sizes) == dynamicRank)
      give(std::array<std::int64_t, dynamicRank>{static_cast<std::int64_t>(sizes)...});
    else
      give(std::array<std::int64_t, 1>{row() != 0 && given % row() == 0 ? given / row() : -1});
  }

  constexpr T *data() const { return elements; }
  constexpr std::int64_t extent(std::size_t dimension) const { return extents[dimension]; }
  /// Returns the number of elements of the range; -1 if the view was made from a pointer.
  constexpr std::int64_t size() const { return given; }
  /// Whether the range may have more elements than the tensor.
  constexpr bool is_room() const { return isRoom; }
  /// Returns the product of the fixed dimensions.
  static constexpr std::int64_t row() { return ((Extents == dynamic ? 1 : Extents) * ... * std::int64_t(1)); }

private:
  constexpr void give(std::array<std::int64_t, dynamicRank> sizes) {
    std::size_t next = 0;
    if constexpr (dynamicRank > 0)
      for (std::int64_t &extent : extents)
        if (extent == dynamic)
          extent = sizes[next++];
  }

  T *elements = nullptr;
  std::int64_t given = -1;
  bool isRoom = false;
  std::array<std::int64_t, rank> extents{Extents...};
};

/// Compares the arguments of a call with the shapes of its entry, and reports a difference by the argument's name.
class Check {
public:
  constexpr Check(kiln_error_t *to, const char *of) : error(to), entry(of) {}

  /// Checks that the elements of a range are a multiple of the fixed dimensions.
  template <class View> constexpr void whole(const char *kind, const char *name, const View &view) {
    for (std::size_t i = 0; i < View::rank; ++i)
      if (view.extent(i) < 0 && view.size() >= 0)
        fail(kind, name, "wrong number of elements; expected a multiple of ", View::row(), view.size());
  }
  template <class View>
  constexpr void extents(const char *kind, const char *name, const View &view,
                         std::initializer_list<std::int64_t> expected) {
    std::int64_t elements = 1;
    std::size_t dimension = 0;
    if (view.data() == nullptr)
      return; // the entry reports null pointers
    for (std::int64_t extent : expected) {
      if (view.extent(dimension) != extent) {
        char words[] = "wrong size of dimension 0; expected ";
        words[sizeof "wrong size of dimension " - 1] = static_cast<char>('0' + dimension);
        return fail(kind, name, words, extent, view.extent(dimension));
      }
      elements *= extent;
      ++dimension;
    }
    if (view.size() >= 0 && (view.is_room() ? view.size() < elements : view.size() != elements))
      fail(kind, name, view.is_room() ? "too few elements; expected " : "wrong number of elements; expected ", elements,
           view.size());
  }

  kiln_status_t status = KILN_OK;

private:
  constexpr void put(const char *text) {
    if (error)
      for (; *text && length + 1 < sizeof error->message; ++text)
        error->message[length++] = *text;
  }
  constexpr void put(std::int64_t value) {
    char digits[24] = {};
    std::size_t at = sizeof digits - 1;
    std::uint64_t rest = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do
      digits[--at] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
      digits[--at] = '-';
    put(digits + at);
  }
  constexpr void fail(const char *kind, const char *name, const char *words, std::int64_t expected, std::int64_t got) {
    if (status != KILN_OK)
      return;
    status = KILN_EXTENT_OUT_OF_RANGE;
    for (const char *text : {entry, ": ", kind, " \"", name, "\": ", words})
      put(text);
    put(expected);
    put(", got ");
    put(got);
    if (error) {
      error->message[length] = 0;
      error->status = status;
    }
  }

  kiln_error_t *error;
  const char *entry;
  std::size_t length = 0;
};

} // namespace kiln
#endif // KILN_VIEW_HPP
)";

} // namespace kiln
