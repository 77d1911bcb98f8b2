// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Small floats in safetensors files: e4m3, whose blocks with a scale may be the whole matrix or a row; MXFP4; and
 * NVFP4. A value is its number times the scale of its block. Numbers and scales of e4m3 and NVFP4 can be stored
 * unchanged. */
#include "published/elements.h"
#include "weights/format.h"

static void read_f8(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_f8_t *matrix = tensor->parts;
  uint64_t known = UINT64_MAX;
  float scale = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t block = kiln_f8_block(matrix, (first + i) / matrix->columns, (first + i) % matrix->columns);
    const char code = matrix->numbers[first + i];
    if (block != known) {
      scale = kiln_f8_scale(matrix, block);
      known = block;
    }
    to[i] = (code & 0x7F) == 0x7F ? __builtin_nanf("") : kiln_widen_f8(code) * scale;
  }
}

const kiln_form_t kiln_f8_form = {read_f8, kiln_f8_has_groups, kiln_f8_read_groups};

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

/* Rows are whole groups, so element i is in group i / 16 of the matrix. */
static void read_nvfp4(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_nvfp4_t *matrix = tensor->parts;
  const float outer = kiln_nvfp4_outer(matrix);
  for (uint64_t i = first; i < first + count; ++i) {
    const uint32_t pair = (unsigned char)matrix->numbers[i / 2];
    const char scale = matrix->scales[i / KILN_NVFP4_GROUP];
    to[i - first] = (scale & 0x7F) == 0x7F ? __builtin_nanf("")
                                           : kiln_widen_f4(pair >> i % 2 * 4 & 15) * (kiln_widen_f8(scale) * outer);
  }
}

const kiln_form_t kiln_nvfp4_form = {read_nvfp4, kiln_nvfp4_has_groups, kiln_nvfp4_read_groups};
