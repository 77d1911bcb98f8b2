// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Small floats in safetensors files: e4m3, whose blocks with a scale may be the whole matrix or a row; MXFP4; and
 * NVFP4. A value is its number times the scale of its block. Numbers and scales of e4m3 and NVFP4 can be stored
 * unchanged. */
#include "published/published.h"
#include "weights/convert.h"
#include "weights/format.h"

#include <string.h>

static float f8_scale_at(const kiln_f8_t *matrix, uint64_t block) {
  float scale;
  kiln_convert_widen(&scale, matrix->scales + block * (matrix->scale_dtype == KILN_F32 ? 4 : 2), 1,
                     matrix->scale_dtype);
  return scale;
}

static uint64_t f8_block_at(const kiln_f8_t *matrix, uint64_t row, uint64_t column) {
  return row / matrix->block_rows * matrix->scale_columns + column / matrix->block_columns;
}

static void read_f8(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_f8_t *matrix = tensor->parts;
  uint64_t known = UINT64_MAX;
  float scale = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t block = f8_block_at(matrix, (first + i) / matrix->columns, (first + i) % matrix->columns);
    const char code = matrix->numbers[first + i];
    if (block != known) {
      scale = f8_scale_at(matrix, block);
      known = block;
    }
    to[i] = (code & 0x7F) == 0x7F ? __builtin_nanf("") : kiln_widen_f8(code) * scale;
  }
}

/* Whether the magnitude of a scale times the largest number is within the format's limit. */
static bool is_held_scale(float scale, float largest, const kiln_format_t *format) {
  return (scale < 0 ? -scale : scale) <= format->limit / largest;
}

/* Each scale must be that of a whole group, or of all columns. Numbers with others are quantised again. */
static bool has_f8_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const kiln_f8_t *matrix = tensor->parts;
  if (format->element != KILN_F8E4M3 || tensor->rank != 2 ||
      (matrix->scale_columns > 1 && (group == 0 || matrix->block_columns % group)))
    return false;
  const uint64_t rows = (uint64_t)tensor->shape[0];
  const uint64_t count = (rows + matrix->block_rows - 1) / matrix->block_rows * matrix->scale_columns;
  for (uint64_t i = 0; i < count; ++i)
    if (!is_held_scale(f8_scale_at(matrix, i), 448, format))
      return false;
  return true;
}

static void read_f8_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_f8_t *matrix = tensor->parts;
  const size_t together = part->group ? part->group : part->k_extent;
  for (size_t n = 0; n < part->rows; ++n) {
    const uint64_t row = part->row + n;
    const char *const from = matrix->numbers + row * matrix->columns + part->first;
    for (size_t k = 0; k < part->k_extent; ++k)
      arrays[0][k * part->rows + n] = from[k];
    for (size_t k = 0; k < part->k_extent; k += together) {
      const float scale = f8_scale_at(matrix, f8_block_at(matrix, row, part->first + k));
      memcpy(arrays[1] + (k / together * part->rows + n) * sizeof scale, &scale, sizeof scale);
    }
  }
}

const kiln_form_t kiln_f8_form = {read_f8, has_f8_groups, read_f8_groups};

static void read_f4(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_f4_t *parts = tensor->parts;
  for (uint64_t i = first; i < first + count; ++i) {
    const uint32_t pair = (unsigned char)parts->numbers[i / 2];
    const char scale = parts->scales[i / 32];
    to[i - first] =
        scale == (char)0xFF ? __builtin_nanf("") : kiln_widen_f4(pair >> i % 2 * 4 & 15) * kiln_widen_e8m0(scale);
  }
}

const kiln_form_t kiln_f4_form = {read_f4, NULL, NULL};

enum { NVFP4_GROUP = 16 };

static float outer_of(const kiln_nvfp4_t *matrix) {
  float outer;
  memcpy(&outer, matrix->outer, sizeof outer);
  return outer;
}

/* Rows are whole groups, so element i is in group i / 16 of the matrix. */
static void read_nvfp4(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_nvfp4_t *matrix = tensor->parts;
  const float outer = outer_of(matrix);
  for (uint64_t i = first; i < first + count; ++i) {
    const uint32_t pair = (unsigned char)matrix->numbers[i / 2];
    const char scale = matrix->scales[i / NVFP4_GROUP];
    to[i - first] = (scale & 0x7F) == 0x7F ? __builtin_nanf("")
                                           : kiln_widen_f4(pair >> i % 2 * 4 & 15) * (kiln_widen_f8(scale) * outer);
  }
}

static bool has_nvfp4_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  return format->element == KILN_F4E2M1 && format->outer == KILN_F32 && group == NVFP4_GROUP && tensor->rank == 2 &&
         is_held_scale(outer_of(tensor->parts), 6 * 448, format);
}

static void read_nvfp4_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                              char *const arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_nvfp4_t *matrix = tensor->parts;
  uint32_t *const words = (uint32_t *)(void *)arrays[0];
  const float outer = outer_of(matrix);
  for (size_t n = 0; n < part->rows; ++n) {
    const uint64_t at = (part->row + n) * matrix->columns + part->first;
    for (size_t i = 0; i < part->k_extent / KILN_WORD_ELEMENTS; ++i) {
      uint32_t word;
      memcpy(&word, matrix->numbers + at / 2 + i * sizeof word, sizeof word);
      words[i * part->rows + n] = kiln_order_nibbles(word);
    }
    for (size_t i = 0; i < part->k_extent / NVFP4_GROUP; ++i)
      arrays[1][i * part->rows + n] = matrix->scales[at / NVFP4_GROUP + i];
    memcpy(arrays[2] + n * sizeof outer, &outer, sizeof outer);
  }
}

const kiln_form_t kiln_nvfp4_form = {read_nvfp4, has_nvfp4_groups, read_nvfp4_groups};
