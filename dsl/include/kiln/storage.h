// SPDX-License-Identifier: Apache-2.0
//
// The type of a weight as a spec states it: the element type of its tensor, or, for an f32 tensor, the narrower format
// in which the library stores it.
#pragma once

#include <string_view>

#include "kiln/element.h"

namespace kiln {

/// The storage format of an f32 weight (dsl/SPEC.md, Stored weights). A weight without a stated format has that of the
/// build. The members are single bytes: in a template argument with padding, clang 22 reads the doubles after it as 0,
/// or crashes.
struct Storage {
  ElementType element = ElementType::f32; // type of the stored numbers; i8 has one scale per output
  std::uint8_t group = 0; // i4: group size, the number of consecutive values of an output that share a scale
  bool has_zero = false;  // i4: whether each group has a zero point
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

/// Returns "int8", "none" for an unstated format, or "unknown" for a hand-written one.
constexpr const char *name_of(const Storage &storage) {
  for (const detail::StorageName &row : detail::storage_names)
    if (row.storage == storage)
      return row.name;
  return storage.is_stated ? "unknown" : "none";
}
/// Returns the storage format of this name, or an unstated one if there is none.
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
                "kiln: stored: unsupported element type; expected f32, f16 or bf16, or kiln::int8 or kiln::int4 "
                "instead for integers [storage_c1]");
  return Storage(E);
}
template <int Group, bool HasZero> constexpr Storage storage_in_groups() {
  static_assert(Group == 32 || Group == 64 || Group == 128,
                "kiln: int4: unsupported size of the groups; expected 32, 64 or 128 [storage_c2]");
  return Storage(ElementType::i4, Group, HasZero);
}
} // namespace detail

/// An f32 weight that is stored as f16 or bf16, or as f32 regardless of the build's default.
template <ElementType E> inline constexpr Storage stored = detail::storage_as<E>();
/// An f32 weight that is quantised to 8-bit integers with one scale per output.
inline constexpr Storage int8 = Storage(ElementType::i8);
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
