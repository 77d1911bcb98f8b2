// SPDX-License-Identifier: Apache-2.0
//
// f16 (IEEE half), bf16 and tf32, by their bits. Rounding is to nearest, ties to even, unless the name says otherwise.
// Conversions are from f64, so that there is only one rounding.
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
/// The value that tensor cores read from a register: the 13 low bits are dropped.
inline float readTf32(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000U); }

/// Flushes subnormal numbers to zeros of their sign (.ftz).
inline float flushed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

} // namespace kiln::ptx
