// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* States without subnormal numbers, which would slow every later call down. */
#include "model.h"

/* 2^-100 without its sign, as dsl/include/kiln/graph.h says; what is smaller has smaller bits, NaN larger ones. */
enum { LEAST_F32 = 27 << 23, LEAST_BF16 = 27 << 7 };

void kiln_flush_f32(void *values, uint64_t bytes) {
  uint32_t *value = values;
  for (uint64_t i = 0; i < bytes / sizeof *value; ++i)
    value[i] = (value[i] & 0x7FFFFFFF) < LEAST_F32 ? 0 : value[i];
}

void kiln_flush_bf16(void *values, uint64_t bytes) {
  uint16_t *value = values;
  for (uint64_t i = 0; i < bytes / sizeof *value; ++i)
    value[i] = (value[i] & 0x7FFF) < LEAST_BF16 ? 0 : value[i];
}
