// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stands for small_floats.c in a library without such weights, which never calls it. */
#include "weights/convert.h"

void kiln_quantize_to_f8(char *restrict to, const float *restrict from, size_t rows, size_t columns,
                         const float *restrict scales) {
  (void)to, (void)from, (void)rows, (void)columns, (void)scales;
}

bool kiln_quantize_to_f4(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t k_extent,
                         size_t columns, size_t group) {
  (void)words, (void)scales, (void)zeros, (void)from, (void)k_extent, (void)columns, (void)group;
  return false;
}
