// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Quantisation of an f32 weight to formats with bytes in groups, or with outer scales (dsl/SPEC.md, Quantised weights),
 * and the value of a number with an outer scale. K is along the rows, outputs along the columns, so that the loops
 * vectorise. Only libraries with such weights have this file; the others have block_formats_none.c. */
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/round_small.h"

/* The groups of a block of 256, in the arrays of a piece. */
enum { BLOCK = 256, RUN_U4 = 32, RUN_I6 = 16, MOST_RUNS = BLOCK / RUN_I6 };

/* Rounds a number whose magnitude is below 2^22 to an integer: adds a number whose neighbours are 1 apart. */
static inline int32_t whole_of(float value) {
  const float sum = value + 0x1.8p23f;
  return kiln_float_bits(&sum) - 0x4B400000;
}

/* The quotient as an integer within these bounds, or 0 if the divisor is 0. */
static inline int32_t divide(float value, float divisor, float least, float most) {
  const float quotient = value / (divisor == 0 ? 1 : divisor);
  const float raised = quotient < least ? least : quotient, held = raised > most ? most : raised;
  return divisor == 0 ? 0 : whole_of(held);
}

static inline float magnitude_of(float value) { return value < 0 ? -value : value; }

/* Rounds scales to f16, in place, and writes them every `step` bytes. */
static void round_scales(char *to, size_t step, float *scales, size_t count) {
  char halves[2 * KILN_GROUP_COLUMNS];
  kiln_convert_narrow(halves, scales, count, KILN_F16);
  kiln_convert_widen(scales, halves, count, KILN_F16);
  for (size_t n = 0; n < count; ++n)
    memcpy(to + n * step, halves + 2 * n, 2);
}

/* The largest magnitudes of the columns of a group. */
static void find_largest(float *most, const float *from, size_t group, size_t columns) {
  memset(most, 0, columns * sizeof *most);
  for (size_t k = 0; k < group; ++k)
    for (size_t n = 0; n < columns; ++n)
      most[n] = magnitude_of(from[k * columns + n]) > most[n] ? magnitude_of(from[k * columns + n]) : most[n];
}

static void quantize_q8_0(const kiln_format_t *format, char *numbers, char *scales, const float *from, size_t columns) {
  float steps[KILN_GROUP_COLUMNS];
  find_largest(steps, from, format->group, columns);
  for (size_t n = 0; n < columns; ++n)
    steps[n] /= format->divisor;
  round_scales(scales, 2, steps, columns);
  for (size_t k = 0; k < format->group; ++k)
    for (size_t n = 0; n < columns; ++n)
      numbers[k * columns + n] = (char)divide(from[k * columns + n], steps[n], -127, 127);
}

static void quantize_fp8(const kiln_format_t *format, char *numbers, char *scales, const float *from, size_t columns) {
  float steps[KILN_GROUP_COLUMNS];
  find_largest(steps, from, format->group, columns);
  for (size_t n = 0; n < columns; ++n)
    steps[n] /= format->divisor;
  memcpy(scales, steps, columns * sizeof *steps);
  kiln_quantize_to_f8(numbers, from, format->group, columns, steps);
}

/* Adds number k to its word. */
static inline void add_bits(uint32_t *words, size_t k, size_t columns, size_t n, uint32_t bits) {
  words[k / KILN_WORD_ELEMENTS * columns + n] |= bits << KILN_FORMAT_BIT(k);
}

/* A scale is an e4m3, of at most 448, in units of the outer scale; the largest e2m1 is 6. */
static void quantize_nvfp4(const kiln_format_t *format, uint32_t *words, char *scales, const float *outers,
                           const float *from, size_t columns) {
  float steps[KILN_GROUP_COLUMNS];
  find_largest(steps, from, format->group, columns);
  memset(words, 0, format->group / KILN_WORD_ELEMENTS * columns * sizeof *words);
  for (size_t n = 0; n < columns; ++n) {
    const float units = outers[n] == 0 ? 0 : steps[n] / format->divisor / outers[n];
    scales[n] = (char)kiln_round_small(&units, 0x43E00000, 0x3C800000, 3);
    steps[n] = kiln_widen_f8(scales[n]) * outers[n];
  }
  for (size_t k = 0; k < format->group; ++k)
    for (size_t n = 0; n < columns; ++n) {
      const float quotient = steps[n] == 0 ? 0 : from[k * columns + n] / steps[n];
      const uint32_t code = kiln_round_small(&quotient, 0x40C00000, 0x3F800000, 1);
      add_bits(words, k, columns, n, (code & 7) | code >> 28);
    }
}

/* A block of q4_k. A number is its step times the stored one, less an offset; the largest of the steps and of the
 * offsets is 63 times the outer scale, or minimum. */
static void quantize_q4_k(const kiln_format_t *format, uint32_t *words, char *scales, char *outers, const float *from,
                          size_t columns) {
  float steps[BLOCK / RUN_U4][KILN_GROUP_COLUMNS], offsets[BLOCK / RUN_U4][KILN_GROUP_COLUMNS];
  float scale[KILN_GROUP_COLUMNS] = {0}, minimum[KILN_GROUP_COLUMNS] = {0};
  for (size_t run = 0; run < BLOCK / RUN_U4; ++run)
    for (size_t n = 0; n < columns; ++n) {
      float least = 0, most = 0;
      for (size_t k = run * RUN_U4; k < (run + 1) * RUN_U4; ++k) {
        const float value = from[k * columns + n];
        least = value < least ? value : least;
        most = value > most ? value : most;
      }
      steps[run][n] = (most - least) / format->divisor;
      offsets[run][n] = -least;
      scale[n] = steps[run][n] > scale[n] ? steps[run][n] : scale[n];
      minimum[n] = -least > minimum[n] ? -least : minimum[n];
    }
  for (size_t n = 0; n < columns; ++n) {
    scale[n] /= 63;
    minimum[n] /= 63;
  }
  round_scales(outers, 4, scale, columns);
  round_scales(outers + 2, 4, minimum, columns);
  memset(words, 0, BLOCK / KILN_WORD_ELEMENTS * columns * sizeof *words);
  for (size_t run = 0; run < BLOCK / RUN_U4; ++run)
    for (size_t n = 0; n < columns; ++n) {
      const int32_t units = divide(steps[run][n], scale[n], 0, 63), less = divide(offsets[run][n], minimum[n], 0, 63);
      const float step = scale[n] * (float)units, offset = minimum[n] * (float)less;
      scales[(run * columns + n) * 2] = (char)units;
      scales[(run * columns + n) * 2 + 1] = (char)less;
      for (size_t k = run * RUN_U4; k < (run + 1) * RUN_U4; ++k)
        add_bits(words, k, columns, n, (uint32_t)divide(from[k * columns + n] + offset, step, 0, 15));
    }
}

/* Adds number k of q6_k plus 32 to its words. */
static inline void add_six_bits(uint32_t *words, size_t k, size_t columns, size_t n, uint32_t bits) {
  uint32_t *const three = words + k / KILN_SIX_ELEMENTS * 3 * columns + n;
  three[k % KILN_SIX_ELEMENTS / KILN_WORD_ELEMENTS * columns] |= (bits & 15) << KILN_FORMAT_BIT(k);
  three[2 * columns] |= bits >> 4 << KILN_FORMAT_HIGH_BIT(k);
}

/* A block of q6_k. The number with the largest magnitude becomes -32, and the scale of its group -128. */
static void quantize_q6_k(const kiln_format_t *format, uint32_t *words, char *scales, char *outers, const float *from,
                          size_t columns) {
  float steps[MOST_RUNS][KILN_GROUP_COLUMNS], outer[KILN_GROUP_COLUMNS] = {0};
  for (size_t run = 0; run < MOST_RUNS; ++run)
    for (size_t n = 0; n < columns; ++n) {
      float most = 0; /* the first of equal magnitudes */
      for (size_t k = run * RUN_I6; k < (run + 1) * RUN_I6; ++k)
        most = magnitude_of(from[k * columns + n]) > magnitude_of(most) ? from[k * columns + n] : most;
      steps[run][n] = most / format->divisor;
      outer[n] = magnitude_of(steps[run][n]) > magnitude_of(outer[n]) ? steps[run][n] : outer[n];
    }
  for (size_t n = 0; n < columns; ++n)
    outer[n] /= -128;
  round_scales(outers, 2, outer, columns);
  memset(words, 0, BLOCK / KILN_SIX_ELEMENTS * 3 * columns * sizeof *words);
  for (size_t run = 0; run < MOST_RUNS; ++run)
    for (size_t n = 0; n < columns; ++n) {
      const int32_t units = divide(steps[run][n], outer[n], -128, 127);
      const float step = outer[n] * (float)units;
      scales[run * columns + n] = (char)units;
      for (size_t k = run * RUN_I6; k < (run + 1) * RUN_I6; ++k)
        add_six_bits(words, k, columns, n, (uint32_t)(divide(from[k * columns + n], step, -32, 31) + 32));
    }
}

bool kiln_quantize_blocks(const kiln_format_t *format, char *const arrays[KILN_FORMAT_ARRAYS], const float *from,
                          size_t k_extent, size_t columns) {
  const size_t whole = kiln_format_whole(format, format->group);
  const kiln_format_array_t *const rows = format->arrays;
  for (size_t first = 0; first < k_extent; first += whole) {
    char *at[KILN_FORMAT_ARRAYS];
    for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i)
      at[i] = arrays[i] + (rows[i].each ? first / rows[i].each * rows[i].per * rows[i].bytes * columns : 0);
    const float *const part = from + first * columns;
    uint32_t *const words = (uint32_t *)(void *)at[0];
    if (format->element == KILN_I8)
      quantize_q8_0(format, at[0], at[1], part, columns);
    else if (format->element == KILN_F8E4M3)
      quantize_fp8(format, at[0], at[1], part, columns);
    else if (format->element == KILN_F4E2M1)
      quantize_nvfp4(format, words, at[1], (const float *)(const void *)at[2], part, columns);
    else if (format->element == KILN_U4)
      quantize_q4_k(format, words, at[1], at[2], part, columns);
    else
      quantize_q6_k(format, words, at[1], at[2], part, columns);
  }
  return kiln_quantize_fits(from, k_extent * columns, format);
}

static inline uint32_t word_at(const char *words) {
  uint32_t word;
  memcpy(&word, words, sizeof word);
  return word;
}

float kiln_decode_block(const kiln_format_t *format, const char *const items[KILN_FORMAT_ARRAYS], size_t stride,
                        uint64_t k) {
  float outers[2] = {0, 0};
  kiln_convert_widen(outers, items[2], format->has_minimums ? 2 : 1, format->outer);
  if (format->element == KILN_F4E2M1)
    return kiln_widen_f4(word_at(items[0]) >> KILN_FORMAT_BIT(k)) * (kiln_widen_f8(*items[1]) * outers[0]);
  const float step = outers[0] * (float)*(const signed char *)items[1];
  if (format->element == KILN_U4) {
    const float offset = outers[1] * (float)((const signed char *)items[1])[1];
    return step * (float)(word_at(items[0]) >> KILN_FORMAT_BIT(k) & 15) - offset;
  }
  const uint32_t low = word_at(items[0] + k / KILN_WORD_ELEMENTS * stride) >> KILN_FORMAT_BIT(k) & 15,
                 high = word_at(items[0] + 2 * stride) >> KILN_FORMAT_HIGH_BIT(k) & 3;
  return step * (float)((int32_t)(low | high << 4) - 32);
}
