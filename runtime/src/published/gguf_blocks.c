// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The supported element types of GGUF files, decoded in runs of 32 values. Scales are f16. The products for a value
 * are exact in f32 in any order; the single difference of Q4_K is rounded once. */
#include "published/published.h"
#include "weights/convert.h"

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

/* Returns the 6-bit scale and minimum of a run of Q4_K: the high two bits of the last four runs are stored next to
 * those of the first four. */
static inline void six_bits_of(const unsigned char *block, size_t run, unsigned six[2]) {
  const unsigned char *const bytes = block + 4;
  if (run < 4) {
    six[0] = bytes[run] & 63;
    six[1] = bytes[run + 4] & 63;
  } else {
    six[0] = (bytes[run + 4] & 15) | (unsigned)(bytes[run - 4] >> 6) << 4;
    six[1] = (bytes[run + 4] >> 4) | (unsigned)(bytes[run] >> 6) << 4;
  }
}

/* Eight runs: a common scale, and a common scale of the minimums; a 6-bit scale and a 6-bit minimum for each run; then
 * pairs of runs in the nibbles of 32 bytes. */
static void decode_q4_k(const unsigned char *block, size_t run, float *to) {
  const unsigned char *const bytes = block + 16 + run / 2 * 32;
  const unsigned shift = run % 2 * 4;
  unsigned six[2];
  six_bits_of(block, run, six);
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

enum { Q4_0 = 2, Q8_0 = 8, Q4_K = 12, Q6_K = 14 };

static const kiln_gguf_type_t types[] = {
    {0, "F32", KILN_F32, 1, 4, NULL},
    {1, "F16", KILN_F16, 1, 2, NULL},
    {30, "BF16", KILN_BF16, 1, 2, NULL},
    {Q4_0, "Q4_0", KILN_F32, 32, 18, decode_q4_0},
    {Q8_0, "Q8_0", KILN_F32, 32, 34, decode_q8_0},
    {Q4_K, "Q4_K", KILN_F32, 256, 144, decode_q4_k},
    {Q6_K, "Q6_K", KILN_F32, 256, 210, decode_q6_k},
};

const kiln_gguf_type_t *kiln_gguf_type(uint32_t id) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
    if (types[i].id == id)
      return &types[i];
  return NULL;
}

static const unsigned char *row_of(const kiln_tensor_t *tensor, uint64_t row) {
  const kiln_gguf_matrix_t *matrix = tensor->parts;
  const uint64_t row_bytes = matrix->columns / matrix->type->elements * matrix->type->bytes;
  return (const unsigned char *)tensor->data + kiln_rotary_row(matrix->rows, matrix->heads, row) * row_bytes;
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
    read_row(matrix->type, row_of(tensor, first / matrix->columns), to, (size_t)column, step);
  }
}

/* Q4_0 always has a zero point of 8. */
static bool has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const uint32_t type = ((const kiln_gguf_matrix_t *)tensor->parts)->type->id;
  const uint32_t element = type == Q4_0   ? KILN_I4
                           : type == Q8_0 ? KILN_I8
                           : type == Q4_K ? KILN_U4
                           : type == Q6_K ? KILN_I6
                                          : KILN_F32;
  return element != KILN_F32 && format->element == element && group == (type == Q6_K ? 16 : 32) && tensor->rank == 2;
}

/* Returns a word of eight 4-bit numbers, of which k and k + 4 share a byte, from the low or high halves of eight bytes.
 */
static inline uint32_t halves_at(const unsigned char *bytes, unsigned shift) {
  uint32_t first, second;
  memcpy(&first, bytes, sizeof first);
  memcpy(&second, bytes + 4, sizeof second);
  return (first >> shift & 0x0F0F0F0F) | (second >> shift & 0x0F0F0F0F) << 4;
}

/* Arrays with items [..][step] for one output: the words or bytes, the scales and the third array. */
typedef struct output_t {
  uint32_t *words;
  char *numbers, *scales, *outers;
  size_t step;
} output_t;

/* Words 0 and 1 come from the low nibbles of the bytes, 2 and 3 from the high ones. */
static void hold_q4_0(const unsigned char *block, size_t at, const output_t *to) {
  memcpy(to->scales + at * to->step * 2, block, 2);
  to->outers[at * to->step] = 0;
  for (size_t i = 0; i < 4; ++i)
    to->words[(at * 4 + i) * to->step] = halves_at(block + 2 + i % 2 * 8, (unsigned)(i / 2 * 4)) ^ 0x88888888;
}

static void hold_q8_0(const unsigned char *block, size_t at, const output_t *to) {
  memcpy(to->scales + at * to->step * 2, block, 2);
  for (size_t i = 0; i < 32; ++i)
    to->numbers[(at * 32 + i) * to->step] = (char)block[2 + i];
}

static void hold_q4_k(const unsigned char *block, size_t at, const output_t *to) {
  memcpy(to->outers + at * to->step * 4, block, 4);
  for (size_t run = 0; run < 8; ++run) {
    char *const scale = to->scales + (at * 8 + run) * to->step * 2;
    unsigned six[2];
    six_bits_of(block, run, six);
    scale[0] = (char)six[0];
    scale[1] = (char)six[1];
    for (size_t i = 0; i < 4; ++i)
      to->words[((at * 8 + run) * 4 + i) * to->step] =
          halves_at(block + 16 + run / 2 * 32 + i * 8, (unsigned)(run % 2 * 4));
  }
}

/* Runs of 16: two words of low halves, and one with the two high bits of all. */
static void hold_q6_k(const unsigned char *block, size_t at, const output_t *to) {
  memcpy(to->outers + at * to->step * 2, block + 208, 2);
  for (size_t run = 0; run < 16; ++run) {
    const size_t half = run / 8, quarter = run % 8 / 2, lane = run % 2 * 16;
    const unsigned char *const low = block + half * 64 + quarter % 2 * 32 + lane, *const high =
                                                                                      block + 128 + half * 32 + lane;
    uint32_t *const words = to->words + (at * 16 + run) * 3 * to->step;
    words[0] = halves_at(low, (unsigned)(quarter / 2 * 4));
    words[to->step] = halves_at(low + 8, (unsigned)(quarter / 2 * 4));
    words[2 * to->step] = 0;
    for (size_t i = 0; i < 16; ++i)
      words[2 * to->step] |= (uint32_t)(high[i] >> quarter * 2 & 3) << KILN_FORMAT_HIGH_BIT(i);
    to->scales[(at * 16 + run) * to->step] = (char)block[192 + run];
  }
}

static void read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_gguf_type_t *type = ((const kiln_gguf_matrix_t *)tensor->parts)->type;
  const size_t scale_bytes = type->id == Q6_K ? 1 : 2, outer_bytes = type->id == Q4_K ? 4 : type->id == Q6_K ? 2 : 1;
  for (size_t n = 0; n < part->rows; ++n) {
    const unsigned char *block = row_of(tensor, part->row + n) + part->first / type->elements * type->bytes;
    const output_t to = {(uint32_t *)(void *)arrays[0] + n, arrays[0] + n, arrays[1] + n * scale_bytes,
                         arrays[2] + n * outer_bytes, part->rows};
    for (size_t at = 0; at < part->k_extent / type->elements; ++at, block += type->bytes)
      (type->id == Q4_0   ? hold_q4_0
       : type->id == Q8_0 ? hold_q8_0
       : type->id == Q4_K ? hold_q4_k
                          : hold_q6_k)(block, at, &to);
  }
}

const kiln_form_t kiln_gguf_form = {read, has_groups, read_groups};
