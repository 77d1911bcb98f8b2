// SPDX-License-Identifier: Apache-2.0
//
// The type of a weight as a spec states it: the element type of its tensor, or, for an f32 tensor, the narrower format
// in which the library stores it, a row of formats.def.
#pragma once

#include <array>
#include <string_view>

#include "kiln/element.h"
#include "kiln/formats.h"

namespace kiln {

/// A row of formats.def.
using Format = kiln_format_t;

/// The storage format of an f32 weight (dsl/SPEC.md, Quantised weights). A weight without a stated format has that of
/// the build. The members are single bytes: in a template argument with padding, clang 22 reads the doubles after it as
/// 0, or crashes.
struct Storage {
  ElementType element = ElementType::f32; // type of the stored numbers
  std::uint8_t group = 0; // group size, the number of consecutive values of an output that share a scale; 0: all
  bool has_zero = false;  // whether each group has a zero point
  bool is_stated = false;

  constexpr Storage() = default;
  constexpr explicit Storage(ElementType element, int group = 0, bool has_zero = false)
      : element(element), group(static_cast<std::uint8_t>(group)), has_zero(has_zero), is_stated(true) {}
  constexpr bool operator==(const Storage &) const = default;
  constexpr bool has_fewer_bits() const { return is_stated && element != ElementType::f32; }
};

namespace detail {
/// A row, and the names of its formats with groups of 1, 2 and 4 times the least size.
struct FormatRow {
  Format format;
  const char *name;
  const char *sized[3];
};
inline constexpr FormatRow format_rows[] = {
#define KILN_FORMAT(name, ...) {KILN_FORMAT_ROW(name, __VA_ARGS__) #name, {#name "<32>", #name "<64>", #name "<128>"}},
#include "kiln/formats.def"
};

/// Whether groups of the row have one of several sizes, which is then part of the name.
constexpr bool has_sizes(const FormatRow &row) {
  return row.format.group && row.format.group < row.format.largest_group;
}
constexpr int sized_group(int size) { return 32 << size; }
constexpr bool takes_group(const Format &format, int group) {
  return format.group == 0 ? group == 0 : kiln_format_takes(&format, static_cast<std::uint32_t>(group));
}
constexpr ElementType element_of(const Format &format) { return static_cast<ElementType>(format.element); }

constexpr bool are_well_formed() {
  for (const FormatRow &row : format_rows) {
    const Format &format = row.format;
    if (format.bits != info(element_of(format)).bits || std::string_view(format.name) != row.name)
      return false;
    if (has_sizes(row) ? format.group != sized_group(0) || format.largest_group > sized_group(2)
                       : format.group && format.group < KILN_LEAST_GROUP)
      return false;
    if ((format.group || format.has_zeros) && !format.scale_bits)
      return false;
    if (format.outer_bits ? !format.group || format.has_zeros : format.block || format.has_minimums)
      return false;
  }
  return true;
}
static_assert(are_well_formed(), "formats.def: wrong row; expected sizes of groups that names and code have");
} // namespace detail

/// Returns the row of a storage format; null if there is none.
constexpr const Format *find_format(ElementType element, int group, bool has_zero) {
  for (const detail::FormatRow &row : detail::format_rows)
    if (detail::element_of(row.format) == element && row.format.has_zeros == has_zero &&
        detail::takes_group(row.format, group))
      return &row.format;
  return nullptr;
}
/// Whether a format stores such numbers.
constexpr bool is_format_element(ElementType element) {
  for (const detail::FormatRow &row : detail::format_rows)
    if (detail::element_of(row.format) == element)
      return true;
  return false;
}
constexpr const Format *find_format(const Storage &storage) {
  return find_format(storage.element, storage.group, storage.has_zero);
}

/// Returns the row of a placement's format, whose group and third array are those of kiln_placement_t; null if there is
/// none.
constexpr const Format *find_placed_format(ElementType element, std::uint32_t group, bool has_third) {
  for (const detail::FormatRow &row : detail::format_rows)
    if (detail::element_of(row.format) == element && kiln_format_fits(&row.format, group, has_third))
      return &row.format;
  return nullptr;
}
/// Whether a build can quantise the rows that are multiplied by such a weight to int8 (dsl/SPEC.md, int8 activations).
constexpr bool takes_int8_rows(ElementType element, std::int64_t group) {
  return element == ElementType::i4 || (element == ElementType::i8 && group == 0);
}
/// Returns the numbers along K of an output that cannot be separated.
constexpr std::int64_t whole_of(const Storage &storage) {
  const Format *format = find_format(storage);
  return format ? kiln_format_whole(format, storage.group) : 1;
}

/// Returns "int8", "none" for an unstated format, or "unknown" for a hand-written one.
constexpr const char *name_of(const Storage &storage) {
  for (const detail::FormatRow &row : detail::format_rows)
    if (storage.is_stated && find_format(storage) == &row.format) {
      for (int size = 0; detail::has_sizes(row) && size < 3; ++size)
        if (storage.group == detail::sized_group(size))
          return row.sized[size];
      return row.name;
    }
  return storage.is_stated ? "unknown" : "none";
}
/// Returns the storage format of this name, or an unstated one if there is none.
constexpr Storage find_storage(std::string_view name) {
  for (const detail::FormatRow &row : detail::format_rows) {
    const Format &format = row.format;
    if (row.name == name)
      return Storage(detail::element_of(format), format.group, format.has_zeros);
    for (int size = 0; detail::has_sizes(row) && size < 3; ++size)
      if (row.sized[size] == name && detail::takes_group(format, detail::sized_group(size)))
        return Storage(detail::element_of(format), detail::sized_group(size), format.has_zeros);
  }
  return {};
}
constexpr bool is_known(const Storage &storage) {
  return storage == Storage() || (storage.is_stated && find_format(storage));
}

namespace detail {
/// Returns "f32, f16 or bf16": the names of the rows that the predicate accepts.
template <class Predicate, class NameOf>
constexpr std::array<char, 128> list_formats(Predicate is_listed, NameOf name_of_row) {
  std::array<char, 128> text{};
  std::size_t end = 0, count = 0, listed = 0;
  for (const FormatRow &row : format_rows)
    count += is_listed(row);
  for (const FormatRow &row : format_rows) {
    if (!is_listed(row))
      continue;
    for (const std::string_view part : {std::string_view(listed == 0           ? ""
                                                         : listed + 1 == count ? " or "
                                                                               : ", "),
                                        std::string_view(name_of_row(row))})
      for (const char letter : part)
        text[end++] = letter;
    ++listed;
  }
  return text;
}
} // namespace detail

/// The formats as messages list them, "f32, f16 or int8"; those with zero points are variants of others.
inline constexpr auto format_names =
    detail::list_formats([](const detail::FormatRow &row) { return !row.format.has_zeros; },
                         [](const detail::FormatRow &row) { return row.name; });
/// Those that int8 rows are multiplied by: "int8 or int4".
inline constexpr auto integer_format_names = detail::list_formats(
    [](const detail::FormatRow &row) {
      return !row.format.has_zeros && takes_int8_rows(detail::element_of(row.format), row.format.group);
    },
    [](const detail::FormatRow &row) { return row.name; });
/// The element types of formats with fewer bits than f32, each once: "f16 or i8".
inline constexpr auto format_elements = detail::list_formats(
    [](const detail::FormatRow &row) {
      const detail::FormatRow *first = detail::format_rows;
      while (first->format.element != row.format.element)
        ++first;
      return first == &row && row.format.bits < 32;
    },
    [](const detail::FormatRow &row) { return name_of(detail::element_of(row.format)); });

namespace detail {
template <ElementType E> constexpr Storage storage_as() {
  static_assert(E == ElementType::f32 || E == ElementType::f16 || E == ElementType::bf16,
                "kiln: stored: unsupported element type; expected f32, f16 or bf16, or kiln::int8 or kiln::int4 "
                "instead for integers [storage_c1]");
  return Storage(E);
}
template <int Group, bool HasZero> constexpr Storage storage_in_groups() {
  static_assert(takes_group(*find_format(find_storage(HasZero ? "int4_zero" : "int4")), Group),
                "kiln: int4: unsupported size of the groups; expected 32, 64 or 128 [storage_c2]");
  return Storage(ElementType::i4, Group, HasZero);
}
} // namespace detail

/// An f32 weight that is stored as f16 or bf16, or as f32 regardless of the build's default.
template <ElementType E> inline constexpr Storage stored = detail::storage_as<E>();
/// An f32 weight that is quantised to 8-bit integers with one scale per output.
inline constexpr Storage int8 = Storage(ElementType::i8);
/// An f32 weight that is quantised to 8-bit floats (e4m3) with one scale per output.
inline constexpr Storage fp8 = Storage(ElementType::f8e4m3);
/// An f32 weight that is quantised to 4-bit floats (e2m1) with a power of two as the scale per 32 numbers of an output.
inline constexpr Storage mxfp4 = Storage(ElementType::f4e2m1, 32);
/// An f32 weight that is quantised to 8-bit floats (e4m3) with one scale per 128 numbers of an output.
inline constexpr Storage fp8_block = Storage(ElementType::f8e4m3, 128);
/// An f32 weight that is quantised to 4-bit floats (e2m1) with an 8-bit float (e4m3) as the scale per 16 numbers, and
/// an outer scale per output.
inline constexpr Storage nvfp4 = Storage(ElementType::f4e2m1, 16);
/// An f32 weight that is quantised to 8-bit integers with one scale per 32 numbers of an output: GGUF's Q8_0.
inline constexpr Storage q8_0 = Storage(ElementType::i8, 32);
/// An f32 weight that is quantised to 4-bit integers with a 6-bit scale and minimum per 32 numbers of an output, and
/// outer ones per 256: GGUF's Q4_K.
inline constexpr Storage q4_k = Storage(ElementType::u4, 32);
/// An f32 weight that is quantised to 6-bit integers with an 8-bit scale per 16 numbers of an output, and an outer one
/// per 256: GGUF's Q6_K.
inline constexpr Storage q6_k = Storage(ElementType::i6, 16);
/// An f32 weight that is quantised to 4-bit integers with one scale per group of each output.
template <int Group = 32> inline constexpr Storage int4 = detail::storage_in_groups<Group, false>();
/// An f32 weight that is quantised to 4-bit integers with one scale and one zero point per group of each output.
template <int Group = 32> inline constexpr Storage int4_zero = detail::storage_in_groups<Group, true>();

/// The type of a weight as a template argument: `kiln::f16` is an f16 tensor; `kiln::int8` is an f32 tensor that is
/// stored as int8.
struct WeightType {
  ElementType element = ElementType::f32;
  Storage storage;

  constexpr WeightType(ElementType element) : element(element) {}
  constexpr WeightType(const Storage &storage) : storage(storage) {}
  constexpr bool operator==(const WeightType &) const = default;
};

} // namespace kiln
