// SPDX-License-Identifier: Apache-2.0
//
// The short floating-point formats, by their bits: f16 (IEEE half), bf16, tf32. Rounding is to nearest, ties to even,
// unless the name says otherwise. From f64, so that one rounding is all there is.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln::ptx {

float fromF16(std::uint16_t bits);
std::uint16_t toF16(double value);
std::uint16_t toF16TowardZero(double value);

inline float fromBf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
std::uint16_t toBf16(double value);
std::uint16_t toBf16TowardZero(double value);

/// cvt.rna.tf32.f32: to nearest, ties away from zero; the 13 low bits are zero.
std::uint32_t toTf32(float value);
/// What the tensor cores see of a register: the 13 low bits are dropped.
inline float readTf32(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000U); }

/// Numbers below the smallest normal one become zeros of their sign (.ftz).
inline float flushed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

} // namespace kiln::ptx
