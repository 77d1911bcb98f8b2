/* SPDX-License-Identifier: Apache-2.0 */
/* Tests every collective of the MPI adapter on random data of odd sizes. Each rank computes the expected sums and moves
 * by itself from the inputs of all ranks: collectives [SEED]. */
#include "kiln/communicators/mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kiln_communicator_t ranks;
static uint32_t seed = 1;
static int failures = 0;

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      ++failures;                                                                                                      \
      fprintf(stderr, "rank %u of %u, seed %u, line %d: " #condition "\n", ranks.rank, ranks.size, seed, __LINE__);    \
    }                                                                                                                  \
  } while (0)

static const size_t bytes_of[] = {4, 2, 2, 4, 1, 1}; /* KILN_F32 .. KILN_BOOL */

/* Returns the input of rank `rank` at `index`. Every rank computes the same value. */
static uint32_t random_of(uint32_t rank, uint64_t index) {
  uint64_t bits = (uint64_t)seed << 32 ^ (uint64_t)rank << 24 ^ index * 0x9E3779B97F4A7C15u;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return (uint32_t)(bits >> 32);
}

/* Writes element number `at` of an array of the given element type. */
static void put(void *memory, uint32_t element, uint64_t at, uint32_t bits) {
  const float number = (float)(int32_t)bits / 0x1p31f;
  const int32_t whole = (int32_t)bits >> 8;
  char *place = (char *)memory + at * bytes_of[element];
  if (element == KILN_F32)
    memcpy(place, &number, sizeof number);
  else
    memcpy(place, element == KILN_I32 ? (const void *)&whole : (const void *)&bits, bytes_of[element]);
}

static void fill(void *memory, uint32_t element, uint32_t rank, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i)
    put(memory, element, i, random_of(rank, i));
}

/* Whether an f32 or i32 element is the sum over all ranks of their inputs at `index`. */
static int is_sum(const void *memory, uint32_t element, uint64_t at, uint64_t index) {
  double sum = 0;
  int32_t whole = 0;
  for (uint32_t rank = 0; rank < ranks.size; ++rank) {
    const int32_t bits = (int32_t)random_of(rank, index);
    sum += (double)((float)bits / 0x1p31f);
    whole += bits >> 8;
  }
  return element == KILN_F32 ? fabs(sum - (double)((const float *)memory)[at]) <= 1e-6 * ranks.size
                             : ((const int32_t *)memory)[at] == whole;
}

static int is_part(const void *memory, uint32_t element, uint64_t at, uint32_t rank, uint64_t first, uint64_t count) {
  char wanted[4];
  for (uint64_t i = 0; i < count; ++i) {
    put(wanted, element, 0, random_of(rank, first + i));
    if (memcmp(wanted, (const char *)memory + (at + i) * bytes_of[element], bytes_of[element]) != 0)
      return 0;
  }
  return 1;
}

static void begin(kiln_collective_kind_t kind, uint32_t element, const void *from, void *to, uint64_t elements,
                  uint32_t peer) {
  kiln_error_t error = {KILN_OK, ""};
  const kiln_collective_t what = {kind, element, from, to, elements, peer, NULL};
  EXPECT(ranks.begin(ranks.self, &what, &error) == KILN_OK);
}

static void finish(void) {
  kiln_error_t error = {KILN_OK, ""};
  EXPECT(ranks.finish(ranks.self, &error) == KILN_OK);
}

static void *allocate(uint64_t elements, uint32_t element) {
  void *memory = calloc((size_t)elements, bytes_of[element]);
  if (!memory)
    MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

/* Every rank must get the same bits. */
static void try_all_reduce(uint32_t element, uint64_t elements) {
  const int bytes = (int)(elements * bytes_of[element]);
  void *values = allocate(elements, element), *first = allocate(elements, element);
  fill(values, element, ranks.rank, elements);
  begin(KILN_ALL_REDUCE, element, values, values, elements, 0);
  finish();
  for (uint64_t i = 0; i < elements; ++i)
    EXPECT(is_sum(values, element, i, i));
  memcpy(first, values, (size_t)bytes);
  MPI_Bcast(first, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  EXPECT(memcmp(first, values, (size_t)bytes) == 0);
  free(first);
  free(values);
}

static void try_reduce_scatter(uint32_t element, uint64_t elements) {
  void *from = allocate(elements * ranks.size, element), *to = allocate(elements, element);
  fill(from, element, ranks.rank, elements * ranks.size);
  begin(KILN_REDUCE_SCATTER, element, from, to, elements, 0);
  finish();
  for (uint64_t i = 0; i < elements; ++i)
    EXPECT(is_sum(to, element, i, ranks.rank * elements + i));
  free(to);
  free(from);
}

/* Each rank's part of the result is written over its part of the input. */
static void try_scatter_in_place(uint32_t element, uint64_t elements) {
  char *values = allocate(elements * ranks.size, element);
  char *own = values + ranks.rank * elements * bytes_of[element];
  fill(values, element, ranks.rank, elements * ranks.size);
  begin(KILN_REDUCE_SCATTER, element, values, own, elements, 0);
  finish();
  for (uint64_t i = 0; i < elements; ++i)
    EXPECT(is_sum(own, element, i, ranks.rank * elements + i));
  free(values);
}

static void try_all_gather(uint32_t element, uint64_t elements) {
  char *values = allocate(elements * ranks.size, element);
  char *own = values + ranks.rank * elements * bytes_of[element];
  fill(own, element, ranks.rank, elements);
  begin(KILN_ALL_GATHER, element, own, values, elements, 0);
  finish();
  for (uint32_t rank = 0; rank < ranks.size; ++rank)
    EXPECT(is_part(values, element, rank * elements, rank, 0, elements));
  free(values);
}

static void try_exchange(uint32_t element, uint64_t elements) {
  void *from = allocate(elements * ranks.size, element), *to = allocate(elements * ranks.size, element);
  fill(from, element, ranks.rank, elements * ranks.size);
  begin(KILN_EXCHANGE, element, from, to, elements, 0);
  finish();
  for (uint32_t rank = 0; rank < ranks.size; ++rank)
    EXPECT(is_part(to, element, rank * elements, rank, ranks.rank * elements, elements));
  free(to);
  free(from);
}

/* Sends around a ring. Both the send and the receive are begun before either is finished. */
static void try_send(uint32_t element, uint64_t elements) {
  const uint32_t before = (ranks.rank + ranks.size - 1) % ranks.size;
  void *from = allocate(elements, element), *to = allocate(elements, element);
  fill(from, element, ranks.rank, elements);
  begin(KILN_SEND, element, from, NULL, elements, (ranks.rank + 1) % ranks.size);
  begin(KILN_RECEIVE, element, NULL, to, elements, before);
  finish();
  finish();
  EXPECT(is_part(to, element, 0, before, 0, elements));
  free(to);
  free(from);
}

/* Begins as many collectives at a time as the adapter permits, and finishes them in the order of their beginning. */
static void try_many(void) {
  float values[KILN_MPI_OUTSTANDING][3];
  for (int round = 0; round < 3; ++round) {
    const int count = KILN_MPI_OUTSTANDING - round;
    for (int i = 0; i < count; ++i) {
      fill(values[i], KILN_F32, ranks.rank, 3);
      begin(KILN_ALL_REDUCE, KILN_F32, values[i], values[i], 3, 0);
    }
    for (int i = 0; i < count; ++i) {
      finish();
      for (uint64_t j = 0; j < 3; ++j)
        EXPECT(is_sum(values[i], KILN_F32, j, j));
    }
  }
}

/* Tries a collective that the adapter refuses, on a separate communicator. Each later call must fail with the same
 * message. */
static void try_refused(const kiln_collective_t *what, int times, const char *words) {
  kiln_mpi_t mpi;
  const kiln_communicator_t own = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  kiln_error_t error = {KILN_OK, ""}, again = {KILN_OK, ""};
  static float value;
  const kiln_collective_t good = {
      .kind = KILN_ALL_REDUCE, .element = KILN_F32, .from = &value, .to = &value, .elements = 1};
  kiln_status_t status = KILN_OK;
  for (int i = 0; i < times && what; ++i)
    status = own.begin(own.self, what, &error);
  if (!what)
    status = own.finish(own.self, &error);
  EXPECT(status == KILN_INVALID_ARGUMENT && error.status == status);
  EXPECT(strcmp(error.message, words) == 0);
  EXPECT(own.begin(own.self, &good, &again) == KILN_INVALID_ARGUMENT && strcmp(again.message, words) == 0);
  EXPECT(own.finish(own.self, &again) == KILN_INVALID_ARGUMENT && own.finish(own.self, NULL) == KILN_INVALID_ARGUMENT);
  while (mpi.count > 0) { /* completes what was begun, so that MPI can finalise */
    MPI_Wait(&mpi.requests[mpi.oldest], MPI_STATUS_IGNORE);
    mpi.oldest = (mpi.oldest + 1) % KILN_MPI_OUTSTANDING;
    --mpi.count;
  }
  kiln_mpi_release(&mpi); /* does nothing */
  MPI_Comm_free(&mpi.comm);
}

static void try_misuse(void) {
  static float value[8];
  static uint16_t half[8];
  kiln_collective_t what = {.kind = KILN_ALL_REDUCE, .element = KILN_F16, .from = half, .to = half, .elements = 8};
  try_refused(&what, 1, "MPI: wrong element type; expected f32 or i32 to sum");
  what.element = KILN_I8;
  try_refused(&what, 1, "MPI: wrong element type; expected f32 or i32 to sum");
  what.kind = KILN_ALL_GATHER;
  what.element = KILN_I4;
  try_refused(&what, 1, "MPI: wrong element type; expected f32, f16, bf16, i32, i8 or bool");
  what = (kiln_collective_t){.kind = KILN_ALL_REDUCE, .element = KILN_F32, .from = value, .to = value, .elements = 1};
  try_refused(&what, KILN_MPI_OUTSTANDING + 1, "MPI: too many collectives; expected at most KILN_MPI_OUTSTANDING");
  what.stream = &what;
  try_refused(&what, 1, "MPI: buffers of a GPU; expected those of the host");
  what.stream = NULL;
  what.elements = (uint64_t)1 << 31;
  try_refused(&what, 1, "MPI: too many elements; expected parts of less than 2^31");
  try_refused(NULL, 0, "finish: no collective; expected one that was begun");
}

static void try_all(uint32_t element, uint64_t elements) {
  if (element == KILN_F32 || element == KILN_I32) {
    try_all_reduce(element, elements);
    try_reduce_scatter(element, elements);
    try_scatter_in_place(element, elements);
  }
  try_all_gather(element, elements);
  try_exchange(element, elements);
  try_send(element, elements);
}

int main(int argc, char **argv) {
  static const uint64_t sizes[] = {1, 2, 3, 17, 255, 1000, 4099, 65537};
  kiln_mpi_t mpi;
  int all = 0;
  if (MPI_Init(&argc, &argv))
    return 2;
  seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
  ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
    for (uint32_t element = KILN_F32; element <= KILN_BOOL; ++element, ++seed)
      try_all(element, sizes[i]);
  try_many();
  try_misuse();
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (ranks.rank == 0)
    printf("%u ranks, %d failures\n", ranks.size, all);
  MPI_Finalize();
  return all > 0;
}
