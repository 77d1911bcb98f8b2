// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stands for block_formats.c in a library without such weights, which never calls it. */
#include "weights/convert.h"

bool kiln_quantize_blocks(const kiln_format_t *format, char *const arrays[KILN_FORMAT_ARRAYS], const float *from,
                          size_t k_extent, size_t columns) {
  (void)format, (void)arrays, (void)from, (void)k_extent, (void)columns;
  return false;
}

float kiln_decode_block(const kiln_format_t *format, const char *const items[KILN_FORMAT_ARRAYS], size_t stride,
                        uint64_t k) {
  (void)format, (void)items, (void)stride, (void)k;
  return 0;
}
