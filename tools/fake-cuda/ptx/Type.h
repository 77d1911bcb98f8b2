// SPDX-License-Identifier: Apache-2.0
//
// The types of PTX's instructions and variables.
#pragma once

#include <string_view>

namespace kiln::ptx {

enum class Type : unsigned char {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  tf32,
  f32,
  f64
};

/// Returns Type::u32 for "u32"; Type::none if it is no type.
Type typeOf(std::string_view name);
std::string_view nameOf(Type type);
unsigned bitsOf(Type type);
inline unsigned bytesOf(Type type) { return bitsOf(type) / 8; }
bool isSigned(Type type);
/// Whether the type is of kind u, s or b.
bool isInteger(Type type);
bool isFloat(Type type);

} // namespace kiln::ptx
