// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Flushes subnormal numbers in states, which would slow down every later call. */
#include "core/model.h"

/* The bits of 2^-100, see dsl/include/kiln/graph.h. Smaller magnitudes have smaller bits, NaN has larger ones. */
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
