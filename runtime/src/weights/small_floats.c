// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Quantisation of an f32 weight to floats of a byte (dsl/SPEC.md, Quantised weights). Only libraries with such weights
 * have this file; the others have small_floats_none.c. */
#include "weights/convert.h"

#include <string.h>

static inline int32_t bits_of(const float *value) {
  int32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits;
}

/* The largest e4m3, 448, and the smallest normal one, 2^-6. */
enum { MOST_BITS = 0x43E00000, NORMAL_BITS = 0x3C800000 };

/* If the scale is 0, all values are 0 and are divided by 1. A subnormal scale may be so imprecise that a quotient
 * exceeds 448. Adding a number whose neighbours are a unit in the last place apart rounds to nearest even, and counts
 * these units; the exponent adds eight of them for each power of two above the smallest normal number. */
void kiln_quantize_to_f8(char *restrict to, const float *restrict from, size_t rows, size_t columns,
                         const float *restrict scales) {
  for (size_t row = 0; row < rows; ++row, from += columns, to += columns)
    for (size_t i = 0; i < columns; ++i) {
      const int32_t scale_bits = bits_of(scales + i), divisor_bits = scale_bits | (-(scale_bits == 0) & 0x3F800000);
      float divisor, size, unit;
      memcpy(&divisor, &divisor_bits, sizeof divisor);
      const float quotient = from[i] / divisor;
      int32_t magnitude = bits_of(&quotient) & 0x7FFFFFFF;
      magnitude = magnitude > MOST_BITS ? MOST_BITS : magnitude;
      const int32_t exponent = (magnitude < NORMAL_BITS ? NORMAL_BITS : magnitude) >> 23, unit_bits = (exponent + 20)
                                                                                                      << 23;
      memcpy(&size, &magnitude, sizeof size);
      memcpy(&unit, &unit_bits, sizeof unit);
      const float sum = size + unit;
      to[i] = (char)((bits_of(&quotient) >> 24 & 0x80) |
                     (bits_of(&sum) - unit_bits + (exponent - (NORMAL_BITS >> 23)) * 8));
    }
}
