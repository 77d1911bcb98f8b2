// SPDX-License-Identifier: Apache-2.0
//
// What a spec says of a weight's type: the element type of its tensor, or, for one of f32, in which fewer bits the
// library stores it.
#pragma once

#include <string_view>

#include "kiln/element.h"

namespace kiln {

/// How a weight of f32 is stored (dsl/SPEC.md, Stored weights); as the build says where nothing is stated. Members of
/// one byte: of a template argument with padding clang 22 takes doubles behind it for 0, or crashes.
struct Storage {
  ElementType element = ElementType::f32; // of the numbers in memory; those of i8 have a scale for each output
  std::uint8_t group = 0;                 // of i4: how many numbers of an output, one after the other, have one scale
  bool has_zero = false;                  // of i4: whether a number of each group stands for 0
  bool is_stated = false;

  constexpr Storage() = default;
  constexpr explicit Storage(ElementType element, int group = 0, bool has_zero = false)
      : element(element), group(static_cast<std::uint8_t>(group)), has_zero(has_zero), is_stated(true) {}
  constexpr bool operator==(const Storage &) const = default;
  constexpr bool has_fewer_bits() const { return is_stated && element != ElementType::f32; }
};

namespace detail {
struct StorageName {
  const char *name;
  Storage storage;
};
inline constexpr StorageName storage_names[] = {{"f32", Storage(ElementType::f32)},
                                                {"f16", Storage(ElementType::f16)},
                                                {"bf16", Storage(ElementType::bf16)},
                                                {"int8", Storage(ElementType::i8)},
                                                {"int4<32>", Storage(ElementType::i4, 32)},
                                                {"int4<64>", Storage(ElementType::i4, 64)},
                                                {"int4<128>", Storage(ElementType::i4, 128)},
                                                {"int4_zero<32>", Storage(ElementType::i4, 32, true)},
                                                {"int4_zero<64>", Storage(ElementType::i4, 64, true)},
                                                {"int4_zero<128>", Storage(ElementType::i4, 128, true)},
                                                {"int4", Storage(ElementType::i4, 32)},
                                                {"int4_zero", Storage(ElementType::i4, 32, true)}};
} // namespace detail

/// "int8"; "none" of one that is not stated, "unknown" of one that somebody wrote by hand.
constexpr const char *name_of(const Storage &storage) {
  for (const detail::StorageName &row : detail::storage_names)
    if (row.storage == storage)
      return row.name;
  return storage.is_stated ? "unknown" : "none";
}
/// The storage of a name; one that is not stated if there is none.
constexpr Storage find_storage(std::string_view name) {
  for (const detail::StorageName &row : detail::storage_names)
    if (row.name == name)
      return row.storage;
  return {};
}
constexpr bool is_known(const Storage &storage) {
  return storage == Storage() || find_storage(name_of(storage)) == storage;
}

namespace detail {
template <ElementType E> constexpr Storage storage_as() {
  static_assert(E == ElementType::f32 || E == ElementType::f16 || E == ElementType::bf16,
                "kiln: stored requires f32, f16 or bf16; in whole numbers a weight is stored as kiln::int8 or "
                "kiln::int4 [storage_c1]");
  return Storage(E);
}
template <int Group, bool HasZero> constexpr Storage storage_in_groups() {
  static_assert(Group == 32 || Group == 64 || Group == 128, "kiln: int4 requires groups of 32, 64 or 128 [storage_c2]");
  return Storage(ElementType::i4, Group, HasZero);
}
} // namespace detail

/// A weight of f32 whose numbers are stored as f16 or bf16, or as f32 whatever the build says.
template <ElementType E> inline constexpr Storage stored = detail::storage_as<E>();
/// A weight of f32 that is stored as whole numbers of 8 bits, with a scale for each output.
inline constexpr Storage int8 = Storage(ElementType::i8);
/// A weight of f32 that is stored as whole numbers of 4 bits, with a scale for each group of each output.
template <int Group = 32> inline constexpr Storage int4 = detail::storage_in_groups<Group, false>();
/// The same with a number for each group that stands for 0.
template <int Group = 32> inline constexpr Storage int4_zero = detail::storage_in_groups<Group, true>();

/// The type of a weight as a template argument: `kiln::f16`, a tensor of f16; `kiln::int8`, a tensor of f32 that is
/// stored so.
struct WeightType {
  ElementType element = ElementType::f32;
  Storage storage;

  constexpr WeightType(ElementType element) : element(element) {}
  constexpr WeightType(const Storage &storage) : storage(storage) {}
  constexpr bool operator==(const WeightType &) const = default;
};

} // namespace kiln
