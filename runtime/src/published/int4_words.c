// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Matrices of GPTQ and AWQ files. The file stores the transpose of the model's matrix [outputs, inputs], with 4 bits
 * per element and eight elements in a 32-bit word:
 *
 *   GPTQ  words [inputs / 8][outputs], the first input in the lowest bits
 *   AWQ   words [inputs][outputs / 8], outputs 0 2 4 6 1 3 5 7 from the lowest bits on
 *
 * and for each group of inputs a scale and a zero point per output, the latter also eight in a word. */
#include "published/elements.h"

static void read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_int4_t *matrix = tensor->parts;
  const size_t scale_bytes = matrix->scale_dtype == KILN_F32 ? 4 : 2;
  uint64_t output = first / matrix->inputs, input = first % matrix->inputs, known = UINT64_MAX;
  float scale = 0;
  int zero = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t group = kiln_int4_group(matrix, input);
    if (group != known) {
      kiln_convert_widen(&scale, matrix->scales + (group * matrix->outputs + output) * scale_bytes, 1,
                         matrix->scale_dtype);
      zero = kiln_int4_zero(matrix, output, group);
      known = group;
    }
    to[i] = (float)(kiln_int4_element(matrix, output, input) - zero) * scale;
    if (++input == matrix->inputs) {
      input = 0;
      known = UINT64_MAX;
      ++output;
    }
  }
}

const kiln_form_t kiln_int4_form = {read, kiln_int4_has_groups, kiln_int4_read_groups};
