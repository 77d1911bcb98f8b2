// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors as an enumeration, and what is known of each: it all comes from element_types.def.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln {

enum class ElementType : std::uint8_t {
#define KILN_ELEMENT_TYPE(name, ...) name,
#include "kiln/element_types.def"
};

enum class ElementKind : std::uint8_t { floating, integer, boolean };

struct ElementInfo {
  const char *name;
  ElementKind kind;
  int bits;   // that an element takes where it is stored; below eight, several share a byte
  int digits; // of its numbers, without the sign; of a float those of the significand, with the leading one
  const char *c_type;

  /// The bounds of a whole number.
  constexpr std::int64_t most() const { return (std::int64_t{1} << digits) - 1; }
  constexpr std::int64_t least() const { return kind == ElementKind::boolean ? 0 : -most() - 1; }
  /// The exponent of the smallest normal number of a float; that of the largest is 1 - this.
  constexpr int least_exponent() const { return 2 - (1 << (bits - digits - 1)); }
};

namespace detail {
inline constexpr ElementInfo element_rows[] = {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir)                                          \
  {#name, ElementKind::kind, bits, digits, #c_type},
#include "kiln/element_types.def"
};
} // namespace detail

inline constexpr std::size_t element_type_count = sizeof(detail::element_rows) / sizeof(ElementInfo);

/// Whether the number is one of a type: of a graph that somebody wrote by hand, it may not be.
constexpr bool is_known(ElementType element) { return static_cast<std::size_t>(element) < element_type_count; }
constexpr const ElementInfo &info(ElementType element) {
  return detail::element_rows[static_cast<std::size_t>(element)];
}
constexpr const char *name_of(ElementType element) { return is_known(element) ? info(element).name : "unknown"; }
constexpr bool floating(ElementType element) { return info(element).kind == ElementKind::floating; }
/// A float of fewer bits than it is computed with: f16, bf16.
constexpr bool short_float(ElementType element) { return floating(element) && info(element).bits < 32; }

/// Bytes of so many elements that lie together.
constexpr std::int64_t stored_bytes(ElementType element, std::int64_t elements) {
  return (elements * info(element).bits + 7) / 8;
}

} // namespace kiln
