// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The supported element types of GGUF files, decoded in runs of 32 values. Scales are f16. The products for a value
 * are exact in f32 in any order; the single difference of Q4_K is rounded once. */
#include "published/elements.h"

#include <string.h>

static float half_at(const unsigned char *at) {
  float value;
  kiln_convert_widen(&value, (const char *)at, 1, KILN_F16);
  return value;
}

/* A scale, then elements j and j + 16 in the nibbles of a byte. */
static void decode_q4_0(const unsigned char *block, size_t run, float *to) {
  const float scale = half_at(block);
  (void)run;
  for (size_t i = 0; i < 16; ++i) {
    to[i] = (float)((int)(block[2 + i] & 15) - 8) * scale;
    to[i + 16] = (float)((int)(block[2 + i] >> 4) - 8) * scale;
  }
}

/* A scale, then bytes. */
static void decode_q8_0(const unsigned char *block, size_t run, float *to) {
  const float scale = half_at(block);
  (void)run;
  for (size_t i = 0; i < KILN_GGUF_RUN; ++i)
    to[i] = (float)(signed char)block[2 + i] * scale;
}

/* Eight runs: a common scale, and a common scale of the minimums; a 6-bit scale and a 6-bit minimum for each run; then
 * pairs of runs in the nibbles of 32 bytes. */
static void decode_q4_k(const unsigned char *block, size_t run, float *to) {
  const unsigned char *const bytes = block + 16 + run / 2 * 32;
  const unsigned shift = run % 2 * 4;
  unsigned six[2];
  kiln_gguf_six_bits(block, run, six);
  const float step = half_at(block) * (float)six[0], offset = half_at(block + 2) * (float)six[1];
  for (size_t i = 0; i < KILN_GGUF_RUN; ++i)
    to[i] = step * (float)(bytes[i] >> shift & 15) - offset;
}

/* Eight runs, four in each half of the block: for each half, the low four bits of 128 elements in 64 bytes; then the
 * high two bits, in 32 bytes each; a signed scale for every 16 elements; and a common scale. */
static void decode_q6_k(const unsigned char *block, size_t run, float *to) {
  const size_t half = run / 4, quarter = run % 4;
  const unsigned char *const low = block + half * 64 + quarter % 2 * 32, *const high = block + 128 + half * 32;
  const signed char *const scales = (const signed char *)block + 192 + run * 2;
  const float scale = half_at(block + 208);
  for (size_t part = 0; part < 2; ++part) {
    const float step = scale * (float)scales[part];
    for (size_t i = part * 16; i < part * 16 + 16; ++i) {
      const int element = (low[i] >> quarter / 2 * 4 & 15) | (high[i] >> quarter * 2 & 3) << 4;
      to[i] = step * (float)(element - 32);
    }
  }
}

static const kiln_gguf_type_t types[] = {
    {0, "F32", KILN_F32, 1, 4, NULL},
    {1, "F16", KILN_F16, 1, 2, NULL},
    {30, "BF16", KILN_BF16, 1, 2, NULL},
    {KILN_GGUF_Q4_0, "Q4_0", KILN_F32, 32, 18, decode_q4_0},
    {KILN_GGUF_Q8_0, "Q8_0", KILN_F32, 32, 34, decode_q8_0},
    {KILN_GGUF_Q4_K, "Q4_K", KILN_F32, 256, 144, decode_q4_k},
    {KILN_GGUF_Q6_K, "Q6_K", KILN_F32, 256, 210, decode_q6_k},
};

const kiln_gguf_type_t *kiln_gguf_type(uint32_t id) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
    if (types[i].id == id)
      return &types[i];
  return NULL;
}

/* Decodes part of a row. */
static void read_row(const kiln_gguf_type_t *type, const unsigned char *row, float *to, size_t column, size_t count) {
  if (!type->decode) {
    kiln_convert_widen(to, (const char *)row + column * type->bytes, count, type->dtype);
    return;
  }
  const size_t runs = type->elements / KILN_GGUF_RUN;
  for (size_t step; count > 0; to += step, column += step, count -= step) {
    const size_t run = column / KILN_GGUF_RUN, skipped = column % KILN_GGUF_RUN;
    const unsigned char *const block = row + run / runs * type->bytes;
    step = KILN_GGUF_RUN - skipped < count ? KILN_GGUF_RUN - skipped : count;
    if (step == KILN_GGUF_RUN) {
      type->decode(block, run % runs, to);
    } else {
      float all[KILN_GGUF_RUN];
      type->decode(block, run % runs, all);
      memcpy(to, all + skipped, step * sizeof *to);
    }
  }
}

static void read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_gguf_matrix_t *matrix = tensor->parts;
  for (size_t step; count > 0; to += step, first += step, count -= step) {
    const uint64_t column = first % matrix->columns, left = matrix->columns - column;
    step = left < count ? (size_t)left : count;
    read_row(matrix->type, kiln_gguf_row(tensor, first / matrix->columns), to, (size_t)column, step);
  }
}

const kiln_form_t kiln_gguf_form = {read, kiln_gguf_has_groups, kiln_gguf_read_groups};
