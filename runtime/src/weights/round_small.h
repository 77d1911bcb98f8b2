// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Rounding to floats of a byte or less, for small_floats.c and block_formats.c. */
#ifndef KILN_ROUND_SMALL_H
#define KILN_ROUND_SMALL_H

#include <stdint.h>
#include <string.h>

static inline int32_t kiln_float_bits(const float *value) {
  int32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits;
}

/* Rounds to a float with `fraction` bits of fraction: to nearest even, and to the largest number, whose bits as an f32
 * are `most`, if the value is larger. normal: the bits of the smallest normal number. Adding a number whose neighbours
 * are a unit in the last place apart rounds, and counts these units; the exponent adds those of each power of two above
 * the smallest normal number. The sign is bit 31. */
static inline uint32_t kiln_round_small(const float *value, int32_t most, int32_t normal, int fraction) {
  const int32_t bits = kiln_float_bits(value);
  int32_t magnitude = bits & 0x7FFFFFFF;
  magnitude = magnitude > most ? most : magnitude;
  const int32_t exponent = (magnitude < normal ? normal : magnitude) >> 23, unit_bits = (exponent + 23 - fraction)
                                                                                        << 23;
  float size, unit;
  memcpy(&size, &magnitude, sizeof size);
  memcpy(&unit, &unit_bits, sizeof unit);
  const float sum = size + unit;
  return (uint32_t)(kiln_float_bits(&sum) - unit_bits + ((exponent - (normal >> 23)) << fraction)) |
         ((uint32_t)bits & 0x80000000u);
}

#endif /* KILN_ROUND_SMALL_H */
