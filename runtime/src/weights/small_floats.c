// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Quantisation of an f32 weight to floats of a byte or less (dsl/SPEC.md, Quantised weights). Only libraries with such
 * weights have this file; the others have small_floats_none.c. */
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/round_small.h"

#include <string.h>

/* If the scale is 0, all values are 0 and are divided by 1. A subnormal scale may be so imprecise that a quotient
 * exceeds 448, the largest e4m3; the smallest normal one is 2^-6. */
void kiln_quantize_to_f8(char *restrict to, const float *restrict from, size_t rows, size_t columns,
                         const float *restrict scales) {
  for (size_t row = 0; row < rows; ++row, from += columns, to += columns)
    for (size_t i = 0; i < columns; ++i) {
      const int32_t scale_bits = kiln_float_bits(scales + i),
                    divisor_bits = scale_bits | (-(scale_bits == 0) & 0x3F800000);
      float divisor;
      memcpy(&divisor, &divisor_bits, sizeof divisor);
      const float quotient = from[i] / divisor;
      const uint32_t code = kiln_round_small(&quotient, 0x43E00000, 0x3C800000, 3);
      to[i] = (char)(code | code >> 24);
    }
}

/* The scale of a group is 2 to the exponent of its largest magnitude, less that of 4, the largest power of two of e2m1:
 * OCP Microscaling Formats. Its largest number is 6, its smallest normal one 1. */
bool kiln_quantize_to_f4(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t k_extent,
                         size_t columns, size_t group) {
  (void)zeros;
  memset(words, 0, k_extent / KILN_WORD_ELEMENTS * columns * sizeof *words);
  for (size_t first = 0; first < k_extent; first += group) {
    int32_t most[KILN_GROUP_COLUMNS] = {0};
    float factors[KILN_GROUP_COLUMNS];
    for (size_t k = first; k < first + group; ++k)
      for (size_t n = 0; n < columns; ++n) {
        const int32_t magnitude = kiln_float_bits(from + k * columns + n) & 0x7FFFFFFF;
        most[n] = magnitude > most[n] ? magnitude : most[n];
      }
    for (size_t n = 0; n < columns; ++n) {
      const int32_t exponent = most[n] >> 23 > 2 ? (most[n] >> 23) - 2 : 0, factor = (254 - exponent) << 23;
      scales[first / group * columns + n] = (char)exponent;
      memcpy(factors + n, &factor, sizeof factor); /* 2^(127 - exponent); 2^127 for the scale 2^-127 */
    }
    for (size_t k = first; k < first + group; ++k)
      for (size_t n = 0; n < columns; ++n) {
        const float quotient = from[k * columns + n] * factors[n];
        const uint32_t code = kiln_round_small(&quotient, 0x40C00000, 0x3F800000, 1);
        words[k / KILN_WORD_ELEMENTS * columns + n] |= ((code & 7) | code >> 28) << KILN_FORMAT_BIT(k);
      }
  }
  return kiln_quantize_fits(from, k_extent * columns, kiln_format_find(KILN_F4E2M1, (uint32_t)group, false));
}
