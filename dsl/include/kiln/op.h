// SPDX-License-Identifier: Apache-2.0
//
// The operations as an enumeration, and their properties apart from the semantics: name, family, operands, attributes.
// Everything comes from ops.def; a new operation starts with a row there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln {

enum class Op : std::uint8_t {
#define KILN_OP(name, family, fewest, most, fields) name,
#include "kiln/ops.def"
};

/// Operations of one family have the same type rules, and are evaluated and lowered in one place.
enum class Family : std::uint8_t {
  source,
  lookup,      // table elements by index, and indices
  contraction, // sums of products over an axis
  convolution,
  attention,
  unary,      // floating-point; the result type is that of the operand
  binary,     // numbers; operands broadcast
  comparison, // numbers; operands broadcast; the result is boolean
  logic,      // booleans; operands broadcast
  selection,
  conversion, // to another element type
  norm,       // along an axis, which the result keeps
  reduction,  // along an axis, which the result drops
  image,      // [..., height, width, channels]
  movement,   // moves elements without changing them
  loop,
  state,
  custom, // computed by a function of the program
};

/// The fields of graph.h's Attributes that an operation uses.
enum class Fields : std::uint32_t {
  none = 0,
  index = 1 << 0,
  values = 1 << 1,
  axis = 1 << 2,
  start = 1 << 3, // or at_end
  epsilon = 1 << 4,
  base = 1 << 5,
  weight_order = 1 << 6,
  permutation = 1 << 7,
  kernel = 1 << 8, // fields of the window, up to dilation
  stride = 1 << 9,
  padding = 1 << 10,
  dilation = 1 << 11,
  groups = 1 << 12,
  heads = 1 << 13,  // and key_value_heads, scale, causal, has_mask, has_lengths
  states = 1 << 14, // and reverse, until
  probability = 1 << 15,
  rate = 1 << 16,
};
constexpr Fields operator|(Fields a, Fields b) {
  return static_cast<Fields>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}

struct OpInfo {
  const char *name;
  Family family;
  unsigned fewest, most; // operands
  Fields fields;

  static constexpr unsigned any = ~0u;
  constexpr bool has(Fields field) const {
    return (static_cast<std::uint32_t>(fields) & static_cast<std::uint32_t>(field)) != 0;
  }
};

namespace detail::op_table {
using enum Family;
using enum Fields;
inline constexpr unsigned any = OpInfo::any;
inline constexpr OpInfo rows[] = {
#define KILN_OP(name, family, fewest, most, fields) {#name, Family::family, fewest, most, fields},
#include "kiln/ops.def"
};
} // namespace detail::op_table

inline constexpr std::size_t op_count = sizeof(detail::op_table::rows) / sizeof(OpInfo);

/// Whether the number is a valid operation; in a hand-written graph it may not be.
constexpr bool is_known(Op op) { return static_cast<std::size_t>(op) < op_count; }
constexpr const OpInfo &info(Op op) { return detail::op_table::rows[static_cast<std::size_t>(op)]; }
constexpr const char *name_of(Op op) { return is_known(op) ? info(op).name : "unknown"; }
constexpr Family family_of(Op op) { return info(op).family; }

/// Returns the operation of this name, or op_count as an Op if there is none.
constexpr Op find_op(std::string_view name) {
  std::size_t i = 0;
  while (i < op_count && name != detail::op_table::rows[i].name)
    ++i;
  return static_cast<Op>(i);
}

} // namespace kiln
