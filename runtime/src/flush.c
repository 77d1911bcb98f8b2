// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* States without subnormal numbers, which would slow every later call down. */
#include "model.h"

#include <string.h>

/* 2^-100 without its sign, as dsl/include/kiln/graph.h says; what is smaller has smaller bits, NaN larger ones. */
enum { LEAST_F32 = 27 << 23, LEAST_BF16 = 27 << 7 };

/* Copies what a state has held before, so that it needs no look. Where it ends. */
static uint64_t copy_old(void *target, const void *source, uint64_t bytes, uint64_t fresh) {
  const uint64_t old = fresh < bytes ? bytes - fresh : 0;
  memcpy(target, source, old);
  return old;
}

void kiln_store_f32(void *target, const void *source, uint64_t bytes, uint64_t fresh) {
  uint32_t *restrict to = target;
  const uint32_t *restrict from = source;
  for (uint64_t i = copy_old(target, source, bytes, fresh) / sizeof *to; i < bytes / sizeof *to; ++i)
    to[i] = (from[i] & 0x7FFFFFFF) < LEAST_F32 ? 0 : from[i];
}

void kiln_store_bf16(void *target, const void *source, uint64_t bytes, uint64_t fresh) {
  uint16_t *restrict to = target;
  const uint16_t *restrict from = source;
  for (uint64_t i = copy_old(target, source, bytes, fresh) / sizeof *to; i < bytes / sizeof *to; ++i)
    to[i] = (from[i] & 0x7FFF) < LEAST_BF16 ? 0 : from[i];
}
