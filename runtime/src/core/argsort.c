/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Sorted positions of the elements along an axis. Elements are compared as integer keys, equal ones by their positions,
 * so the order is total and any correct algorithm gives the same result. All positions are sorted by quicksort, which
 * becomes heapsort if it splits badly, in place and in O(n log n); the first few of many are kept in a heap while the
 * line is read once. Lines are shared among workers. */
#include "core/model.h"

#include <string.h>

/* A task has lines of at least this many elements in all, unless it has one line. */
enum { TASK_ELEMENTS = 1 << 14, SHORT_LINE = 12 };

typedef struct argsort_t {
  int32_t *places;
  const char *x;
  int64_t outer, extent, inner, count;
  int64_t lines; /* per task */
  uint32_t element;
  int32_t reversed; /* all ones if descending: keys are complemented */
} argsort_t;

/* One line: the elements and the places are `inner` apart. */
typedef struct line_t {
  const argsort_t *all;
  const char *x;
  int32_t *places;
} line_t;

/* The order of floats by their bits: NaN after all numbers, -0 equal to 0. */
static int32_t float_key(uint32_t bits, uint32_t infinity) {
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > infinity)
    return INT32_MAX;
  return bits >> 31 ? -(int32_t)magnitude : (int32_t)magnitude;
}

static int32_t key_of(const line_t *line, int32_t place) {
  const argsort_t *all = line->all;
  const int64_t at = place * all->inner;
  uint32_t bits = 0;
  int32_t key = 0;
  switch (all->element) {
  case KILN_F32:
    memcpy(&bits, line->x + at * 4, 4);
    key = float_key(bits, 0x7F800000u);
    break;
  case KILN_F16:
  case KILN_BF16: {
    uint16_t half;
    memcpy(&half, line->x + at * 2, 2);
    key = float_key((uint32_t)half << 16, all->element == KILN_F16 ? 0x7C000000u : 0x7F800000u);
    break;
  }
  case KILN_I8:
    key = *(const int8_t *)(line->x + at);
    break;
  default:
    memcpy(&key, line->x + at * 4, 4);
  }
  return key ^ all->reversed;
}

static int32_t *place_at(const line_t *line, int64_t i) { return line->places + i * line->all->inner; }

/* Whether the element at place a comes before the one at b, which has this key. */
static int is_before(const line_t *line, int32_t a, int32_t b, int32_t key_of_b) {
  const int32_t key = key_of(line, a);
  return key < key_of_b || (key == key_of_b && a < b);
}

static void swap(int32_t *a, int32_t *b) {
  const int32_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Moves the place at `i` of the heap [first, first + size) down until none below it comes later. */
static void sift_down(const line_t *line, int64_t first, int64_t size, int64_t i) {
  const int32_t moved = *place_at(line, first + i), key = key_of(line, moved);
  for (int64_t child; (child = 2 * i + 1) < size; i = child) {
    if (child + 1 < size) {
      const int32_t right = *place_at(line, first + child + 1);
      child += is_before(line, *place_at(line, first + child), right, key_of(line, right));
    }
    const int32_t below = *place_at(line, first + child);
    if (is_before(line, below, moved, key))
      break;
    *place_at(line, first + i) = below;
  }
  *place_at(line, first + i) = moved;
}

static void make_heap(const line_t *line, int64_t first, int64_t size) {
  for (int64_t i = size / 2; i-- > 0;)
    sift_down(line, first, size, i);
}

static void sort_heap(const line_t *line, int64_t first, int64_t size) {
  while (--size > 0) {
    swap(place_at(line, first), place_at(line, first + size));
    sift_down(line, first, size, 0);
  }
}

static void sort_by_insertion(const line_t *line, int64_t first, int64_t end) {
  for (int64_t i = first + 1; i < end; ++i) {
    const int32_t moved = *place_at(line, i), key = key_of(line, moved);
    int64_t to = i;
    for (; to > first && !is_before(line, *place_at(line, to - 1), moved, key); --to)
      *place_at(line, to) = *place_at(line, to - 1);
    *place_at(line, to) = moved;
  }
}

/* Puts the median of the first, middle and last place first, and splits by it. Returns where it then is. */
static int64_t split(const line_t *line, int64_t first, int64_t end) {
  int32_t *a = place_at(line, first), *b = place_at(line, first + (end - first) / 2), *c = place_at(line, end - 1);
  if (is_before(line, *b, *a, key_of(line, *a)))
    swap(a, b);
  if (is_before(line, *c, *b, key_of(line, *b)))
    swap(b, c);
  if (is_before(line, *a, *b, key_of(line, *b))) /* c is the last of the three */
    swap(a, b);
  const int32_t pivot = *a, key = key_of(line, pivot);
  int64_t low = first, high = end;
  for (;;) {
    while (++low < end && is_before(line, *place_at(line, low), pivot, key))
      ;
    while (--high > first && !is_before(line, *place_at(line, high), pivot, key))
      ;
    if (low >= high)
      break;
    swap(place_at(line, low), place_at(line, high));
  }
  swap(a, place_at(line, high));
  return high;
}

static void sort_places(const line_t *line, int64_t first, int64_t end, int depth) {
  while (end - first > SHORT_LINE) {
    if (depth-- == 0) {
      make_heap(line, first, end - first);
      sort_heap(line, first, end - first);
      return;
    }
    const int64_t middle = split(line, first, end);
    if (middle - first < end - middle) { /* the recursion is for the shorter part */
      sort_places(line, first, middle, depth);
      first = middle + 1;
    } else {
      sort_places(line, middle + 1, end, depth);
      end = middle;
    }
  }
  sort_by_insertion(line, first, end);
}

static void sort_line(const line_t *line) {
  const int64_t extent = line->all->extent, count = line->all->count;
  for (int64_t i = 0; i < count; ++i)
    *place_at(line, i) = (int32_t)i;
  if (count == extent) {
    int depth = 2;
    for (int64_t rest = extent; rest > 1; rest /= 2)
      depth += 2;
    sort_places(line, 0, extent, depth);
    return;
  }
  make_heap(line, 0, count);
  int32_t last = *place_at(line, 0), key = key_of(line, last);
  for (int64_t i = count; i < extent; ++i)
    if (is_before(line, (int32_t)i, last, key)) {
      *place_at(line, 0) = (int32_t)i;
      sift_down(line, 0, count, 0);
      last = *place_at(line, 0);
      key = key_of(line, last);
    }
  sort_heap(line, 0, count);
}

static int sort_lines(void *worker, int index, uint8_t *closure) {
  (void)worker;
  argsort_t all;
  memcpy(&all, closure, sizeof all);
  const int64_t first = index * all.lines, lines = all.outer * all.inner;
  const int64_t size = all.element == KILN_F32 || all.element == KILN_I32 ? 4 : all.element == KILN_I8 ? 1 : 2;
  for (int64_t number = first; number < first + all.lines && number < lines; ++number) {
    const int64_t outer = number / all.inner, inner = number % all.inner;
    const line_t line = {&all, all.x + (outer * all.extent * all.inner + inner) * size,
                         all.places + outer * all.count * all.inner + inner};
    sort_line(&line);
  }
  return 0;
}

int kiln_argsort(kiln_worker_t *worker, int32_t *places, const void *x, int64_t outer, int64_t extent, int64_t inner,
                 int64_t count, uint32_t element, uint32_t is_descending) {
  const int64_t total = outer * inner, lines = extent < TASK_ELEMENTS ? TASK_ELEMENTS / extent : 1;
  argsort_t all = {places, x, outer, extent, inner, count, lines, element, is_descending ? -1 : 0};
  return kiln_do_par_for(worker, sort_lines, 0, (int)((total + lines - 1) / lines), (uint8_t *)&all);
}
