// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors as an enumeration, and their properties; both come from element_types.def.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln {

enum class ElementType : std::uint8_t {
#define KILN_ELEMENT_TYPE(name, ...) name,
#include "kiln/element_types.def"
};

/// small_float: floats of less than 16 bits, and small_integer: integers of less than 8, which only weights are stored
/// as.
enum class ElementKind : std::uint8_t { floating, integer, boolean, small_float, small_integer };

struct ElementInfo {
  const char *name;
  ElementKind kind;
  int bits;   // storage bits of an element; below eight, several elements share a byte
  int digits; // value bits without the sign; for a float those of the significand, including the implicit one
  const char *c_type;

  /// The bounds of an integer type.
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

/// Whether the number is a valid type; in a hand-written graph it may not be.
constexpr bool is_known(ElementType element) { return static_cast<std::size_t>(element) < element_type_count; }
constexpr const ElementInfo &info(ElementType element) {
  return detail::element_rows[static_cast<std::size_t>(element)];
}
constexpr const char *name_of(ElementType element) { return is_known(element) ? info(element).name : "unknown"; }
constexpr bool floating(ElementType element) { return info(element).kind == ElementKind::floating; }
/// Whether the type is a 16-bit float, f16 or bf16, which kernels compute in f32.
constexpr bool half_float(ElementType element) { return floating(element) && info(element).bits < 32; }

/// Whether tensors of a model cannot have the type, since only weights are stored so.
constexpr bool only_stored(ElementType element) {
  return info(element).kind == ElementKind::small_float || info(element).kind == ElementKind::small_integer;
}

/// Bytes of contiguous elements.
constexpr std::int64_t stored_bytes(ElementType element, std::int64_t elements) {
  return (elements * info(element).bits + 7) / 8;
}

} // namespace kiln
