// SPDX-License-Identifier: Apache-2.0
//
// The sine and the cosine of any f32 in f64. Some C libraries (MinGW's) reduce the angle by the instruction fsin, whose
// pi has 66 bits: it is wrong near multiples of pi, and returns angles beyond 2^63 as they are. Here the angle is
// reduced by as many bits of 1/(2 pi) as the range of f32 takes (Payne and Hanek, Radian Reduction for Trigonometric
// Functions, 1983).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace kiln::testing::oracle {

/// A quarter turn that an angle is in, 0 to 3, and the rest of the angle, from -pi/4 to pi/4.
struct ReducedAngle {
  int quarter;
  double rest;
};

/// Returns 64 bits of 1/(2 pi), of which the first is worth 2^-(1 + first).
inline std::uint64_t bitsOfInverseTurn(int first) {
  // The first 64 bits are zeros.
  constexpr std::uint64_t bits[] = {
      0, 0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158, 0x6dc91b8e909374b8};
  const int word = (first + 64) / 64, shift = (first + 64) % 64;
  return shift == 0 ? bits[word] : bits[word] << shift | bits[word + 1] >> (64 - shift);
}

/// x is a finite f32 of at least 1.
inline ReducedAngle reduceAngle(double x) {
  int exponent;
  const auto significand = static_cast<std::uint64_t>(std::ldexp(std::frexp(x, &exponent), 24)); // x is f32: exact
  exponent -= 24;
  // x / (2 pi) modulo 1 in 128 bits: the product of the significand and bits in two halves, without its integer part.
  const std::uint64_t low = bitsOfInverseTurn(exponent + 64), high = bitsOfInverseTurn(exponent);
  const std::uint64_t lowest = significand * (low & 0xffffffff);
  const std::uint64_t middle = significand * (low >> 32) + (lowest >> 32);
  std::uint64_t turn = significand * high + (middle >> 32);
  const std::uint64_t rest = middle << 32 | (lowest & 0xffffffff);
  // The nearest quarter, and the distance to it.
  const std::uint64_t quarter = (turn + (std::uint64_t{1} << 61)) >> 62;
  turn -= quarter << 62;
  const double turns = std::ldexp(static_cast<double>(static_cast<std::int64_t>(turn)), -64) +
                       std::ldexp(static_cast<double>(rest), -128);
  return {static_cast<int>(quarter % 4), turns * (2 * std::numbers::pi)};
}

/// Returns the sine of an f32 plus so many quarter turns.
inline double sineAfter(double x, int quarters) {
  if (!std::isfinite(x))
    return std::nan("");
  ReducedAngle angle{0, std::fabs(x)};
  if (angle.rest >= 1)
    angle = reduceAngle(angle.rest);
  if (x < 0) // -a = quarter turns in the other direction
    angle = {(4 - angle.quarter) % 4, -angle.rest};
  const int quarter = (angle.quarter + quarters) % 4;
  const double value = quarter % 2 == 0 ? std::sin(angle.rest) : std::cos(angle.rest);
  return quarter < 2 ? value : -value;
}

inline double sin(double x) { return sineAfter(x, 0); }
inline double cos(double x) { return sineAfter(x, 1); }

} // namespace kiln::testing::oracle
