// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Writes to states and to weights. */
#include "core/model.h"

#include <string.h>

/* A copy that the workers perform in parallel, in parts. */
typedef struct copy_t {
  char *to;
  const char *from;
  uint64_t bytes;
} copy_t;
enum { PART_BYTES = 1 << 19 };

static int copy_part(void *worker, int index, uint8_t *closure) {
  (void)worker;
  copy_t copy;
  memcpy(&copy, closure, sizeof copy);
  const uint64_t begin = (uint64_t)index * PART_BYTES;
  memcpy(copy.to + begin, copy.from + begin, copy.bytes - begin < PART_BYTES ? copy.bytes - begin : PART_BYTES);
  return 0;
}

void kiln_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                    uint64_t source_stride) {
  const uint64_t bytes = rows * row_bytes;
  if (bytes >= 2 * PART_BYTES && (rows == 1 || row_bytes == source_stride) && bytes < (uint64_t)PART_BYTES << 30) {
    copy_t copy = {target, source, bytes};
    (void)kiln_do_par_for(worker, copy_part, 0, (int)((bytes + PART_BYTES - 1) / PART_BYTES), (uint8_t *)&copy);
    return;
  }
  char *to = target;
  const char *from = source;
  for (uint64_t row = 0; row < rows; ++row)
    memcpy(to + row * row_bytes, from + row * source_stride, row_bytes);
}
