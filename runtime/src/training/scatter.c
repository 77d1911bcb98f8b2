// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The gradient of a look-up: scatter-add of rows by index. The table is split into parts of some rows, one task
 * each, and every task goes through all indices in order: a row has the same bits for every number of workers,
 * without atomic additions, and a value that is not finite stays in its row. */
#include "core/model.h"

#include <string.h>

enum { PART_FLOATS = 1 << 17 };

typedef struct scatter_t {
  float *table;
  const float *rows;
  const int32_t *indices;
  int64_t height, count, width;
  int64_t part; /* table rows per task */
} scatter_t;

/* One task owns all rows of a part and adds in order, so the bits do not depend on the partition. */
static int scatter_part(void *worker, int index, uint8_t *closure) {
  (void)worker;
  scatter_t all;
  memcpy(&all, closure, sizeof all);
  const int64_t first = index * all.part, end = all.height - first < all.part ? all.height : first + all.part;
  memset(all.table + first * all.width, 0, (size_t)((end - first) * all.width) * sizeof *all.table);
  for (int64_t r = 0; r < all.count; ++r) {
    const int64_t place = all.indices[r] < 0 ? 0 : all.indices[r] < all.height ? all.indices[r] : all.height - 1;
    if (place < first || place >= end)
      continue;
    float *to = all.table + place * all.width;
    const float *from = all.rows + r * all.width;
    for (int64_t c = 0; c < all.width; ++c)
      to[c] += from[c];
  }
  return 0;
}

int kiln_scatter_add(kiln_worker_t *worker, float *table, const float *rows, const int32_t *indices, int64_t height,
                     int64_t count, int64_t width) {
  /* Each task reads all indices, so its part of the table must take longer than that. */
  int64_t part = (PART_FLOATS + width - 1) / width;
  if (part < count / 64)
    part = count / 64;
  if (part > height)
    part = height;
  scatter_t all = {table, rows, indices, height, count, width, part};
  return kiln_do_par_for(worker, scatter_part, 0, (int)((height + part - 1) / part), (uint8_t *)&all);
}
