// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Matrices of e4m3 numbers in safetensors files. A value is its number times the scale of its block, which may be the
 * whole matrix or a row. */
#include "readers/published.h"
#include "weights/convert.h"
#include "weights/format.h"

static void read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
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

const kiln_form_t kiln_f8_form = {read, NULL, NULL};
