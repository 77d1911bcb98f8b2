// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A weight of f32 as int4 in groups (dsl/SPEC.md, Stored weights): elements are s (q - z), q and z of four bits, with
 * an s, and a z if there are any, for each group of the depth of each output. Scales are f16, and so are those that w
 * is divided by. Depth runs along rows here, outputs along columns: loops over these become vectors. */
#include "convert.h"

#include <string.h>

/* What makes whole numbers of a sum with it, whose neighbours are 1 apart, and its bits. */
#define WHOLE 0x1.8p23f
enum { WHOLE_BITS = 0x4B400000 };

/* Modulo 2^32: of a number that is so large that it is refused, whatever it becomes. */
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

/* The scales of one group, and what stands for 0: without zeros 8. A scale of 0 belongs to numbers that are 0. */
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
        most[n] = size_of(value) > size_of(most[n]) ? value : most[n]; /* the first of equal sizes */
      }
    }
  for (size_t n = 0; n < columns; ++n)
    exact[n] = zeros ? (most[n] - least[n]) / 15 : most[n] / -8;
  kiln_convert_narrow(scales, exact, columns, KILN_F16);
  kiln_convert_widen(exact, scales, columns, KILN_F16);
  for (size_t n = 0; zeros && n < columns; ++n)
    zeros[n] = (signed char)(exact[n] == 0 ? -8 : clamp((int32_t)whole_of(-least[n] / exact[n]), 0, 15) - 8);
}

bool kiln_quantize_groups(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t depth,
                          size_t columns, size_t group) {
  memset(words, 0, depth / KILN_WORD_ELEMENTS * columns * sizeof *words);
  for (size_t first = 0; first < depth; first += group) {
    float exact[KILN_GROUP_COLUMNS];
    const size_t index = first / group * columns;
    signed char *const zero = zeros ? zeros + index : NULL;
    find_scales(scales + index * 2, zero, exact, from + first * columns, group, columns);
    for (size_t k = first; k < first + group; ++k) {
      uint32_t *const word = words + k / KILN_WORD_ELEMENTS * columns;
      for (size_t n = 0; n < columns; ++n) {
        const float divisor = exact[n] == 0 ? 1 : exact[n];
        const uint32_t whole = whole_of(from[k * columns + n] / divisor) + (zero ? (uint32_t)zero[n] : 0);
        word[n] |= (uint32_t)(clamp((int32_t)whole, -8, 7) & 15) << kiln_bit_in_word(k);
      }
    }
  }
  return kiln_quantize_fits(from, depth * columns, KILN_I4);
}
