// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The elements of third-party quantised checkpoints: what the readers of values (gguf_blocks.c, int4_words.c,
 * small_float_numbers.c) share with the readers of groups (kept_numbers.c). */
#ifndef KILN_ELEMENTS_H
#define KILN_ELEMENTS_H

#include "published/published.h"
#include "weights/convert.h"

#include <string.h>

/* GGUF's numbers of the types with blocks. */
enum { KILN_GGUF_Q4_0 = 2, KILN_GGUF_Q8_0 = 8, KILN_GGUF_Q4_K = 12, KILN_GGUF_Q6_K = 14 };

static inline const unsigned char *kiln_gguf_row(const kiln_tensor_t *tensor, uint64_t row) {
  const kiln_gguf_matrix_t *matrix = tensor->parts;
  const uint64_t row_bytes = matrix->columns / matrix->type->elements * matrix->type->bytes;
  return (const unsigned char *)tensor->data + kiln_rotary_row(matrix->rows, matrix->heads, row) * row_bytes;
}

/* Returns the 6-bit scale and minimum of a run of Q4_K: the high two bits of the last four runs are stored next to
 * those of the first four. */
static inline void kiln_gguf_six_bits(const unsigned char *block, size_t run, unsigned six[2]) {
  const unsigned char *const bytes = block + 4;
  if (run < 4) {
    six[0] = bytes[run] & 63;
    six[1] = bytes[run + 4] & 63;
  } else {
    six[0] = (bytes[run + 4] & 15) | (unsigned)(bytes[run - 4] >> 6) << 4;
    six[1] = (bytes[run + 4] >> 4) | (unsigned)(bytes[run] >> 6) << 4;
  }
}

static inline uint32_t kiln_int4_word(const char *words, uint64_t index) {
  uint32_t word;
  memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

/* The bit offset of one of the eight outputs in an AWQ word. */
static inline unsigned kiln_int4_bit(uint64_t output) { return (unsigned)(output % 8 / 2 + output % 2 * 4) * 4; }

static inline int kiln_int4_element(const kiln_int4_t *matrix, uint64_t output, uint64_t input) {
  const uint32_t word =
      matrix->is_awq
          ? kiln_int4_word(matrix->words, input * (matrix->outputs / 8) + output / 8) >> kiln_int4_bit(output)
          : kiln_int4_word(matrix->words, input / 8 * matrix->outputs + output) >> input % 8 * 4;
  return (int)(word & 15);
}

/* The zero point, reduced to 4 bits as its writer did. */
static inline int kiln_int4_zero(const kiln_int4_t *matrix, uint64_t output, uint64_t group) {
  const uint32_t word = kiln_int4_word(matrix->zeros, group * (matrix->outputs / 8) + output / 8);
  const unsigned bit = matrix->is_awq ? kiln_int4_bit(output) : (unsigned)(output % 8 * 4);
  return (int)(((word >> bit) + matrix->more) & 15);
}

/* The groups were checked, but another program may write to a mapped file meanwhile, hence the bound. */
static inline uint64_t kiln_int4_group(const kiln_int4_t *matrix, uint64_t input) {
  const uint64_t group = matrix->groups ? kiln_int4_word(matrix->groups, input) : input / matrix->group;
  return group < matrix->group_count ? group : 0;
}

static inline float kiln_f8_scale(const kiln_f8_t *matrix, uint64_t block) {
  float scale;
  kiln_convert_widen(&scale, matrix->scales + block * (matrix->scale_dtype == KILN_F32 ? 4 : 2), 1,
                     matrix->scale_dtype);
  return scale;
}

static inline uint64_t kiln_f8_block(const kiln_f8_t *matrix, uint64_t row, uint64_t column) {
  return row / matrix->block_rows * matrix->scale_columns + column / matrix->block_columns;
}

enum { KILN_NVFP4_GROUP = 16 };

static inline float kiln_nvfp4_outer(const kiln_nvfp4_t *matrix) {
  float outer;
  memcpy(&outer, matrix->outer, sizeof outer);
  return outer;
}

#endif /* KILN_ELEMENTS_H */
