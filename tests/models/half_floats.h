// SPDX-License-Identifier: Apache-2.0
//
// Bit patterns of f16 and bf16 elements as in a library's header. Rounding is to nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::testing {

inline std::uint16_t to_f16(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (!std::isfinite(value))
    return static_cast<std::uint16_t>(sign | (std::isnan(value) ? 0x7e00 : 0x7c00));
  const int exponent = value == 0 ? -14 : std::max(std::ilogb(value), -14);
  const double units = std::nearbyint(std::ldexp(std::abs(double{value}), 10 - exponent)); // normal: >= 1024
  const double bits = std::min((exponent + 14) * 1024.0 + units, double{0x7c00});
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(bits));
}

inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value))
    return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31
                         ? fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity()
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

} // namespace kiln::testing
