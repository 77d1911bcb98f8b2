// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Small floats in safetensors files: e4m3, whose blocks with a scale may be the whole matrix or a row, and MXFP4. A
 * value is its number times the scale of its block. */
#include "published/published.h"
#include "weights/convert.h"
#include "weights/format.h"

static void read_f8(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_f8_t *matrix = tensor->parts;
  const size_t scale_bytes = matrix->scale_dtype == KILN_F32 ? 4 : 2;
  uint64_t known = UINT64_MAX;
  float scale = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t row = (first + i) / matrix->columns, column = (first + i) % matrix->columns;
    const uint64_t block = row / matrix->block_rows * matrix->scale_columns + column / matrix->block_columns;
    const char code = matrix->numbers[first + i];
    if (block != known) {
      kiln_convert_widen(&scale, matrix->scales + block * scale_bytes, 1, matrix->scale_dtype);
      known = block;
    }
    to[i] = (code & 0x7F) == 0x7F ? __builtin_nanf("") : kiln_widen_f8(code) * scale;
  }
}

const kiln_form_t kiln_f8_form = {read_f8, NULL, NULL};

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
