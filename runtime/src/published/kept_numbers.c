// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Hands out the numbers and scales of third-party quantised checkpoints unchanged, where they are those of a storage
 * format. Only libraries whose weights have groups, or are small floats, have this file; the others have
 * kept_numbers_none.c. */
#include "published/elements.h"

/* GGUF */

/* Q4_0 always has a zero point of 8. */
bool kiln_gguf_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const uint32_t type = ((const kiln_gguf_matrix_t *)tensor->parts)->type->id;
  const uint32_t element = type == KILN_GGUF_Q4_0   ? KILN_I4
                           : type == KILN_GGUF_Q8_0 ? KILN_I8
                           : type == KILN_GGUF_Q4_K ? KILN_U4
                           : type == KILN_GGUF_Q6_K ? KILN_I6
                                                    : KILN_F32;
  return element != KILN_F32 && format->element == element && group == (type == KILN_GGUF_Q6_K ? 16 : 32) &&
         tensor->rank == 2;
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
    kiln_gguf_six_bits(block, run, six);
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

void kiln_gguf_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_gguf_type_t *type = ((const kiln_gguf_matrix_t *)tensor->parts)->type;
  const size_t scale_bytes = type->id == KILN_GGUF_Q6_K ? 1 : 2, outer_bytes = type->id == KILN_GGUF_Q4_K   ? 4
                                                                               : type->id == KILN_GGUF_Q6_K ? 2
                                                                                                            : 1;
  for (size_t n = 0; n < part->rows; ++n) {
    const unsigned char *block = kiln_gguf_row(tensor, part->row + n) + part->first / type->elements * type->bytes;
    const output_t to = {(uint32_t *)(void *)arrays[0] + n, arrays[0] + n, arrays[1] + n * scale_bytes,
                         arrays[2] + n * outer_bytes, part->rows};
    for (size_t at = 0; at < part->k_extent / type->elements; ++at, block += type->bytes)
      (type->id == KILN_GGUF_Q4_0   ? hold_q4_0
       : type->id == KILN_GGUF_Q8_0 ? hold_q8_0
       : type->id == KILN_GGUF_Q4_K ? hold_q4_k
                                    : hold_q6_k)(block, at, &to);
  }
}

/* GPTQ and AWQ */

bool kiln_int4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const kiln_int4_t *matrix = tensor->parts;
  if (format->element != KILN_I4 || matrix->scale_dtype != KILN_F16 || matrix->inputs % group)
    return false;
  if (!matrix->groups && matrix->group != group)
    return false;
  for (uint64_t input = 0; matrix->groups && input < matrix->inputs; ++input)
    if (kiln_int4_group(matrix, input) != input / group)
      return false;
  for (uint64_t i = 0, words = matrix->inputs / group * (matrix->outputs / 8); !format->has_zeros && i < words; ++i)
    if (kiln_int4_word(matrix->zeros, i) != (8u - matrix->more) * 0x11111111u)
      return false;
  return true;
}

/* Returns eight inputs of an output, the first in the lowest bits. */
static inline uint32_t inputs_at(const kiln_int4_t *matrix, uint64_t output, uint64_t input) {
  uint32_t word = 0;
  if (!matrix->is_awq)
    return kiln_int4_word(matrix->words, input / 8 * matrix->outputs + output);
  for (unsigned i = 0; i < KILN_WORD_ELEMENTS; ++i)
    word |= (uint32_t)kiln_int4_element(matrix, output, input + i) << 4 * i;
  return word;
}

void kiln_int4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_int4_t *matrix = tensor->parts;
  uint32_t *const words = (uint32_t *)(void *)arrays[0];
  char *const scales = arrays[1];
  signed char *const zeros = (signed char *)arrays[2];
  const uint64_t first_group = part->first / part->group;
  for (size_t i = 0; i < part->k_extent / KILN_WORD_ELEMENTS; ++i)
    for (size_t n = 0; n < part->rows; ++n) {
      const uint32_t word = inputs_at(matrix, part->row + n, part->first + i * KILN_WORD_ELEMENTS);
      words[i * part->rows + n] = kiln_order_nibbles(word) ^ 0x88888888;
    }
  for (size_t i = 0; i < part->k_extent / part->group; ++i) {
    memcpy(scales + i * part->rows * 2, matrix->scales + ((first_group + i) * matrix->outputs + part->row) * 2,
           part->rows * 2);
    for (size_t n = 0; n < part->rows; ++n)
      zeros[i * part->rows + n] = (signed char)(kiln_int4_zero(matrix, part->row + n, first_group + i) - 8);
  }
}

/* Small floats */

/* Whether the magnitude of a scale times the largest number is within the format's limit. */
static bool is_held_scale(float scale, float largest, const kiln_format_t *format) {
  return (scale < 0 ? -scale : scale) <= format->limit / largest;
}

/* Each scale must be that of a whole group, or of all columns. Numbers with others are quantised again. */
bool kiln_f8_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const kiln_f8_t *matrix = tensor->parts;
  if (format->element != KILN_F8E4M3 || tensor->rank != 2 ||
      (matrix->scale_columns > 1 && (group == 0 || matrix->block_columns % group)))
    return false;
  const uint64_t rows = (uint64_t)tensor->shape[0];
  const uint64_t count = (rows + matrix->block_rows - 1) / matrix->block_rows * matrix->scale_columns;
  for (uint64_t i = 0; i < count; ++i)
    if (!is_held_scale(kiln_f8_scale(matrix, i), 448, format))
      return false;
  return true;
}

void kiln_f8_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_f8_t *matrix = tensor->parts;
  const size_t together = part->group ? part->group : part->k_extent;
  for (size_t n = 0; n < part->rows; ++n) {
    const uint64_t row = part->row + n;
    const char *const from = matrix->numbers + row * matrix->columns + part->first;
    for (size_t k = 0; k < part->k_extent; ++k)
      arrays[0][k * part->rows + n] = from[k];
    for (size_t k = 0; k < part->k_extent; k += together) {
      const float scale = kiln_f8_scale(matrix, kiln_f8_block(matrix, row, part->first + k));
      memcpy(arrays[1] + (k / together * part->rows + n) * sizeof scale, &scale, sizeof scale);
    }
  }
}

bool kiln_nvfp4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  return format->element == KILN_F4E2M1 && format->outer == KILN_F32 && group == KILN_NVFP4_GROUP &&
         tensor->rank == 2 && is_held_scale(kiln_nvfp4_outer(tensor->parts), 6 * 448, format);
}

void kiln_nvfp4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                            char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_nvfp4_t *matrix = tensor->parts;
  uint32_t *const words = (uint32_t *)(void *)arrays[0];
  const float outer = kiln_nvfp4_outer(matrix);
  for (size_t n = 0; n < part->rows; ++n) {
    const uint64_t at = (part->row + n) * matrix->columns + part->first;
    for (size_t i = 0; i < part->k_extent / KILN_WORD_ELEMENTS; ++i) {
      uint32_t word;
      memcpy(&word, matrix->numbers + at / 2 + i * sizeof word, sizeof word);
      words[i * part->rows + n] = kiln_order_nibbles(word);
    }
    for (size_t i = 0; i < part->k_extent / KILN_NVFP4_GROUP; ++i)
      arrays[1][i * part->rows + n] = matrix->scales[at / KILN_NVFP4_GROUP + i];
    memcpy(arrays[2] + n * sizeof outer, &outer, sizeof outer);
  }
}
