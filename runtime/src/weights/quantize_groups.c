// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Group-wise int4 quantisation of an f32 weight (dsl/SPEC.md, Stored weights): elements are s (q - z) with 4-bit q
 * and z, and an s, and a z if there are zero points, for each group along K of each output. Scales are rounded to
 * f16 before w is divided by them. Here K is along the rows, outputs along the columns, so that the loops vectorise. */
#include "weights/convert.h"
#include "weights/format.h"

#include <string.h>

/* Adding this rounds to an integer, since its neighbours are 1 apart; and its bits. */
#define WHOLE 0x1.8p23f
enum { WHOLE_BITS = 0x4B400000 };

/* Modulo 2^32; a value that overflows is rejected elsewhere. */
static inline uint32_t whole_of(float value) {
  const float sum = value + WHOLE;
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  return bits - WHOLE_BITS;
}

static inline int32_t clamp(int32_t value, int32_t least, int32_t most) {
  const int32_t raised = value < least ? least : value;
  return raised > most ? most : raised;
}

static inline float size_of(float value) { return value < 0 ? -value : value; }

/* Computes the scales of one group, and its zero points; without zeros the zero point is 8. If a scale is 0, all
 * values are 0. */
static void find_scales(char *scales, signed char *zeros, float *exact, const float *from, size_t group,
                        size_t columns) {
  float least[KILN_GROUP_COLUMNS] = {0}, most[KILN_GROUP_COLUMNS] = {0};
  for (size_t k = 0; k < group; ++k)
    for (size_t n = 0; n < columns; ++n) {
      const float value = from[k * columns + n];
      if (zeros) {
        least[n] = value < least[n] ? value : least[n];
        most[n] = value > most[n] ? value : most[n];
      } else {
        most[n] = size_of(value) > size_of(most[n]) ? value : most[n]; /* the first of equal magnitudes */
      }
    }
  for (size_t n = 0; n < columns; ++n)
    exact[n] = zeros ? (most[n] - least[n]) / 15 : most[n] / -8;
  kiln_convert_narrow(scales, exact, columns, KILN_F16);
  kiln_convert_widen(exact, scales, columns, KILN_F16);
  for (size_t n = 0; zeros && n < columns; ++n)
    zeros[n] = (signed char)(exact[n] == 0 ? -8 : clamp((int32_t)whole_of(-least[n] / exact[n]), 0, 15) - 8);
}

bool kiln_quantize_groups(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t k_extent,
                          size_t columns, size_t group) {
  memset(words, 0, k_extent / KILN_WORD_ELEMENTS * columns * sizeof *words);
  for (size_t first = 0; first < k_extent; first += group) {
    float exact[KILN_GROUP_COLUMNS];
    const size_t index = first / group * columns;
    signed char *const zero = zeros ? zeros + index : NULL;
    find_scales(scales + index * 2, zero, exact, from + first * columns, group, columns);
    for (size_t k = first; k < first + group; ++k) {
      uint32_t *const word = words + k / KILN_WORD_ELEMENTS * columns;
      for (size_t n = 0; n < columns; ++n) {
        const float divisor = exact[n] == 0 ? 1 : exact[n];
        const uint32_t whole = whole_of(from[k * columns + n] / divisor) + (zero ? (uint32_t)zero[n] : 0);
        word[n] |= (uint32_t)(clamp((int32_t)whole, -8, 7) & 15) << KILN_FORMAT_BIT(k);
      }
    }
  }
  return kiln_quantize_fits(from, k_extent * columns, kiln_format_find(KILN_I4, (uint32_t)group, zeros != NULL));
}
