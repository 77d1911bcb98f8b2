// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Sums of rows by index: index_add, and the gradient of a look-up. The table is split into parts of some rows, one task
 * each, and every task goes through all indices in order: a row has the same bits for every number of workers,
 * without atomic additions, and a value that is not finite stays in its row. */
#include "core/model.h"

#include <string.h>

enum { PART_NUMBERS = 1 << 17 };

typedef struct scatter_t {
  void *table;
  const void *from; /* what the rows are added to; null: zeros */
  const void *rows;
  const int32_t *indices;
  int64_t height, count, width;
  int64_t part; /* table rows per task */
  int is_integer, is_clamped;
} scatter_t;

static void add_floats(float *to, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}
/* Unsigned numbers wrap. */
static void add_integers(uint32_t *to, const uint32_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

/* One task owns all rows of a part and adds in order, so the bits do not depend on the partition. */
static int scatter_part(void *worker, int index, uint8_t *closure) {
  (void)worker;
  scatter_t all;
  memcpy(&all, closure, sizeof all);
  const int64_t first = index * all.part, end = all.height - first < all.part ? all.height : first + all.part;
  const size_t row_bytes = (size_t)all.width * sizeof(float), bytes = (size_t)(end - first) * row_bytes;
  char *table = all.table;
  if (all.from)
    memcpy(table + (size_t)first * row_bytes, (const char *)all.from + (size_t)first * row_bytes, bytes);
  else
    memset(table + (size_t)first * row_bytes, 0, bytes);
  for (int64_t r = 0; r < all.count; ++r) {
    int64_t place = all.indices[r];
    if (all.is_clamped)
      place = place < 0 ? 0 : place < all.height ? place : all.height - 1;
    if (place < first || place >= end)
      continue;
    char *to = table + (size_t)place * row_bytes;
    const char *row = (const char *)all.rows + (size_t)r * row_bytes;
    if (all.is_integer)
      add_integers((uint32_t *)(void *)to, (const uint32_t *)(const void *)row, all.width);
    else
      add_floats((float *)(void *)to, (const float *)(const void *)row, all.width);
  }
  return 0;
}

/* Each task reads all indices, so its part of the table must take longer than that. All tasks together read at most 64
 * indices for each row of the table, so the time is linear in the rows of both. */
static int scatter(kiln_worker_t *worker, scatter_t *all) {
  all->part = (PART_NUMBERS + all->width - 1) / all->width;
  if (all->part < all->count / 64)
    all->part = all->count / 64;
  if (all->part > all->height)
    all->part = all->height;
  return kiln_do_par_for(worker, scatter_part, 0, (int)((all->height + all->part - 1) / all->part), (uint8_t *)all);
}

int kiln_scatter_add(kiln_worker_t *worker, float *table, const float *rows, const int32_t *indices, int64_t height,
                     int64_t count, int64_t width) {
  scatter_t all = {table, 0, rows, indices, height, count, width, 0, 0, 1};
  return scatter(worker, &all);
}

int kiln_index_add(kiln_worker_t *worker, void *table, const void *x, const void *rows, const int32_t *indices,
                   int64_t height, int64_t count, int64_t width, uint32_t element) {
  scatter_t all = {table, x, rows, indices, height, count, width, 0, element == KILN_I32, 0};
  return scatter(worker, &all);
}
