// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/translate/HalfFloats.h"

namespace kiln::halide {

using Halide::Expr;

namespace {

Expr word(uint32_t value) { return Halide::Internal::make_const(Halide::UInt(32), value); }
Expr bitsOf(const Expr &number) { return Halide::reinterpret<uint32_t>(number); }
Expr floatOf(const Expr &bits) { return Halide::reinterpret<float>(bits); }

constexpr uint32_t infinity = 0x7f800000, one = 1 << 23; // infinity of f32, and the unit of its exponent
constexpr uint32_t rebias = (127 - 15) * one;            // difference of the exponent biases of f32 and f16
constexpr uint32_t leastNormal = rebias + one;           // least normal f16, as an f32

/// The magnitude, shifted to its place in f32, lacks the difference of the exponent biases; infinities and NaN lack it
/// twice. Subnormal numbers get the exponent of the least normal one, whose implicit leading bit is subtracted.
Expr widenF16(const Expr &half) {
  Expr wide = Halide::cast<uint32_t>(half), magnitude = (wide & 0x7fff) << 13;
  Expr subnormal = Halide::strict_float(floatOf(magnitude + word(leastNormal)) - 0x1p-14f);
  Expr normal = magnitude + Halide::select(magnitude < word(31 * one), word(rebias), word(2 * rebias));
  return floatOf(Halide::select(magnitude < word(one), bitsOf(subnormal), normal) | ((wide & 0x8000) << 16));
}

/// Rounds to nearest even: adds half of the last place, less one bit if the place is even, and truncates. Below the
/// normal numbers the sum with 1/2 is rounded instead, whose last place is that of a subnormal f16.
Expr narrowF16(const Expr &number) {
  Expr bits = bitsOf(number), magnitude = bits & 0x7fffffff;
  Expr rounded = ((magnitude + 0xfff + ((magnitude >> 13) & 1)) >> 13) - word(rebias >> 13);
  Expr normal = Halide::min(rounded, word(0x7c00));
  Expr subnormal = bitsOf(Halide::strict_float(floatOf(magnitude) + 0.5f)) - word(0x3f000000);
  Expr half = Halide::select(magnitude > word(infinity), word(0x7e00),
                             Halide::select(magnitude < word(leastNormal), subnormal, normal));
  return Halide::cast<uint16_t>(half | ((bits >> 16) & 0x8000));
}

Expr narrowBf16(const Expr &number) {
  Expr bits = bitsOf(number), upper = bits >> 16;
  Expr rounded = (bits + 0x7fff + (upper & 1)) >> 16, quiet = upper | 0x40;
  return Halide::cast<uint16_t>(Halide::select((bits & 0x7fffffff) > word(infinity), quiet, rounded));
}

} // namespace

Expr widen(mlir::Type type, const Expr &bits, const VectorFunctions &functions) {
  if (type.isBF16())
    return floatOf(Halide::cast<uint32_t>(bits) << 16);
  return functions.hasF16 ? floatOfF16(bits) : widenF16(bits);
}

Expr narrow(mlir::Type type, const Expr &number, const VectorFunctions &functions) {
  if (type.isBF16())
    return narrowBf16(number);
  return functions.hasF16 ? f16OfFloat(number) : narrowF16(number);
}

} // namespace kiln::halide
