// SPDX-License-Identifier: Apache-2.0
//
// Conversions of 16-bit floats by integer arithmetic on the bits of an f64.
#include "NumberFormats.h"

#include <cmath>

namespace kiln::ptx {
namespace {

/// Encodes a 16-bit format with `exponentBits` and `fractionBits`.
template <int exponentBits, int fractionBits> std::uint16_t encode(double value, bool towardZero) {
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  constexpr std::uint64_t infinity = ((1ULL << exponentBits) - 1) << fractionBits;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << 15;
  if (std::isnan(value))
    return 0x7fff; // PTX's canonical NaN
  if (std::isinf(value))
    return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent < -bias - fractionBits - 1)
    return static_cast<std::uint16_t>(sign);
  // The fraction with its leading one, and how many of its bits are dropped.
  const std::uint64_t fraction = (bits & ((1ULL << 52) - 1)) | 1ULL << 52;
  const bool subnormal = exponent < 1 - bias;
  const int dropped = 52 - fractionBits + (subnormal ? 1 - bias - exponent : 0);
  std::uint64_t kept = fraction >> dropped;
  const std::uint64_t rest = fraction & ((1ULL << dropped) - 1);
  const std::uint64_t half = 1ULL << (dropped - 1);
  if (!towardZero && (rest > half || (rest == half && (kept & 1))))
    ++kept;
  // A carry out of the fraction correctly increments the exponent.
  std::uint64_t result = subnormal ? kept : kept + (static_cast<std::uint64_t>(exponent + bias - 1) << fractionBits);
  if (result >= infinity)
    result = towardZero ? infinity - 1 : infinity;
  return static_cast<std::uint16_t>(sign | result);
}

} // namespace

float fromF16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 0x3ff;
  float magnitude;
  if (exponent == 31)
    magnitude = fraction ? std::nanf("") : HUGE_VALF;
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  else
    return std::bit_cast<float>((bits & 0x8000U) << 16 | static_cast<std::uint32_t>(exponent + 112) << 23 |
                                static_cast<std::uint32_t>(fraction) << 13);
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::uint16_t toF16(double value) { return encode<5, 10>(value, false); }
std::uint16_t toF16TowardZero(double value) { return encode<5, 10>(value, true); }
std::uint16_t toBf16(double value) { return encode<8, 7>(value, false); }
std::uint16_t toBf16TowardZero(double value) { return encode<8, 7>(value, true); }

std::uint32_t toTf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U)
    return bits & 0xffffe000U;
  return (bits + 0x1000U) & 0xffffe000U;
}

} // namespace kiln::ptx
