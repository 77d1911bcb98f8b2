// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Matrices of GPTQ and AWQ files. The file stores the transpose of the model's matrix [outputs, inputs], with 4 bits
 * per element and eight elements in a 32-bit word:
 *
 *   GPTQ  words [inputs / 8][outputs], the first input in the lowest bits
 *   AWQ   words [inputs][outputs / 8], outputs 0 2 4 6 1 3 5 7 from the lowest bits on
 *
 * and for each group of inputs a scale and a zero point per output, the latter also eight in a word. */
#include "published/published.h"
#include "weights/convert.h"

#include <string.h>

static inline uint32_t word_at(const char *words, uint64_t index) {
  uint32_t word;
  memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

/* The bit offset of one of the eight outputs in an AWQ word. */
static inline unsigned bit_of_output(uint64_t output) { return (unsigned)(output % 8 / 2 + output % 2 * 4) * 4; }

static inline int element_at(const kiln_int4_t *matrix, uint64_t output, uint64_t input) {
  const uint32_t word =
      matrix->is_awq ? word_at(matrix->words, input * (matrix->outputs / 8) + output / 8) >> bit_of_output(output)
                     : word_at(matrix->words, input / 8 * matrix->outputs + output) >> input % 8 * 4;
  return (int)(word & 15);
}

/* The zero point, reduced to 4 bits as its writer did. */
static inline int zero_at(const kiln_int4_t *matrix, uint64_t output, uint64_t group) {
  const uint32_t word = word_at(matrix->zeros, group * (matrix->outputs / 8) + output / 8);
  const unsigned bit = matrix->is_awq ? bit_of_output(output) : (unsigned)(output % 8 * 4);
  return (int)(((word >> bit) + matrix->more) & 15);
}

/* The groups were checked, but another program may write to a mapped file meanwhile, hence the bound. */
static inline uint64_t group_of(const kiln_int4_t *matrix, uint64_t input) {
  const uint64_t group = matrix->groups ? word_at(matrix->groups, input) : input / matrix->group;
  return group < matrix->group_count ? group : 0;
}

static void read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_int4_t *matrix = tensor->parts;
  const size_t scale_bytes = matrix->scale_dtype == KILN_F32 ? 4 : 2;
  uint64_t output = first / matrix->inputs, input = first % matrix->inputs, known = UINT64_MAX;
  float scale = 0;
  int zero = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t group = group_of(matrix, input);
    if (group != known) {
      kiln_convert_widen(&scale, matrix->scales + (group * matrix->outputs + output) * scale_bytes, 1,
                         matrix->scale_dtype);
      zero = zero_at(matrix, output, group);
      known = group;
    }
    to[i] = (float)(element_at(matrix, output, input) - zero) * scale;
    if (++input == matrix->inputs) {
      input = 0;
      known = UINT64_MAX;
      ++output;
    }
  }
}

static bool has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const kiln_int4_t *matrix = tensor->parts;
  if (format->element != KILN_I4 || matrix->scale_dtype != KILN_F16 || matrix->inputs % group)
    return false;
  if (!matrix->groups && matrix->group != group)
    return false;
  for (uint64_t input = 0; matrix->groups && input < matrix->inputs; ++input)
    if (group_of(matrix, input) != input / group)
      return false;
  for (uint64_t i = 0, words = matrix->inputs / group * (matrix->outputs / 8); !format->has_zeros && i < words; ++i)
    if (word_at(matrix->zeros, i) != (8u - matrix->more) * 0x11111111u)
      return false;
  return true;
}

/* Returns eight inputs of an output, the first in the lowest bits. */
static inline uint32_t inputs_at(const kiln_int4_t *matrix, uint64_t output, uint64_t input) {
  uint32_t word = 0;
  if (!matrix->is_awq)
    return word_at(matrix->words, input / 8 * matrix->outputs + output);
  for (unsigned i = 0; i < KILN_WORD_ELEMENTS; ++i)
    word |= (uint32_t)element_at(matrix, output, input + i) << 4 * i;
  return word;
}

static void read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]) {
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
      zeros[i * part->rows + n] = (signed char)(zero_at(matrix, part->row + n, first_group + i) - 8);
  }
}

const kiln_form_t kiln_int4_form = {read, has_groups, read_groups};
