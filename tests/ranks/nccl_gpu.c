/* SPDX-License-Identifier: Apache-2.0 */
/* The NCCL adapter on the real NCCL: one rank, which is a thread, per GPU of this machine, at most eight. Compares
 * every kind of collective in f32 with the inputs of the other ranks; with several GPUs, the last rank is then lost.
 * Exits with 77 if there is no GPU. */
#include "kiln/communicators/nccl.h"

#include <pthread.h>
#include <stdlib.h>

enum { COUNT = 1000, MAX_RANKS = 8, BYTES = COUNT * sizeof(float), DEADLINE_MS = 1000 };

static int size, failures[MAX_RANKS];
static ncclUniqueId id;

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      ++failures[rank];                                                                                                \
      fprintf(stderr, "rank %d of %d, line %d: " #condition ": %s\n", rank, size, __LINE__, error.message);            \
    }                                                                                                                  \
  } while (0)

/* Returns the input of a rank at an index: an integer, so that sums are exact. */
static float value_of(int rank, int index) { return (float)((rank * 7 + index * 5) % 101 - 50); }

static float sum_of(int index) {
  float sum = 0;
  for (int rank = 0; rank < size; ++rank)
    sum += value_of(rank, index);
  return sum;
}

static kiln_status_t begin(const kiln_communicator_t *ranks, kiln_collective_kind_t kind, const void *from, void *to,
                           cudaStream_t stream, uint32_t peer, kiln_error_t *error) {
  const kiln_collective_t what = {kind, KILN_F32, from, to, COUNT, peer, stream};
  return ranks->begin(ranks->self, &what, error);
}

/* `all`, `gathered` and `exchanged` have a part for each rank; the other buffers have one part. */
static void try_kinds(int rank, const kiln_communicator_t *ranks, kiln_nccl_t *nccl, cudaStream_t stream) {
  static const size_t parts[] = {MAX_RANKS, MAX_RANKS, MAX_RANKS, 1, 1, 1};
  kiln_error_t error = {KILN_OK, ""};
  float *device[6], *host = malloc(MAX_RANKS * BYTES);
  const uint32_t next = (uint32_t)((rank + 1) % size), before = (uint32_t)((rank + size - 1) % size);
  for (int i = 0; i < size * COUNT; ++i)
    host[i] = value_of(rank, i);
  for (int i = 0; i < 6; ++i)
    EXPECT(cudaMalloc((void **)&device[i], parts[i] * BYTES) == cudaSuccess);
  float *all = device[0], *gathered = device[1], *exchanged = device[2], *summed = device[3], *scattered = device[4],
        *received = device[5];
  EXPECT(cudaMemcpyAsync(all, host, (size_t)size * BYTES, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  EXPECT(cudaMemcpyAsync(summed, host, BYTES, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  EXPECT(begin(ranks, KILN_ALL_REDUCE, summed, summed, stream, 0, &error) == KILN_OK);
  EXPECT(begin(ranks, KILN_REDUCE_SCATTER, all, scattered, stream, 0, &error) == KILN_OK);
  EXPECT(begin(ranks, KILN_ALL_GATHER, all, gathered, stream, 0, &error) == KILN_OK);
  EXPECT(begin(ranks, KILN_EXCHANGE, all, exchanged, stream, 0, &error) == KILN_OK);
  EXPECT(begin(ranks, KILN_SEND, all, NULL, stream, next, &error) == KILN_OK);
  EXPECT(begin(ranks, KILN_RECEIVE, NULL, received, stream, before, &error) == KILN_OK);
  for (int i = 0; i < 6; ++i)
    EXPECT(ranks->finish(ranks->self, &error) == KILN_OK);
  EXPECT(kiln_nccl_wait(nccl, stream, &error) == KILN_OK);
  for (int i = 1; i < 6; ++i) {
    EXPECT(cudaMemcpy(host, device[i], (i < 3 ? (size_t)size : 1) * BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int j = 0; j < (i < 3 ? size : 1) * COUNT; ++j) {
      const int part = j / COUNT, index = j % COUNT;
      const float wanted[] = {0,
                              value_of(part, index),
                              value_of(part, rank * COUNT + index),
                              sum_of(index),
                              sum_of(rank * COUNT + index),
                              value_of((int)before, index)};
      EXPECT(host[j] == wanted[i]);
    }
  }
  for (int i = 0; i < 6; ++i)
    EXPECT(cudaFree(device[i]) == cudaSuccess);
  free(host);
}

/* The last rank takes no part. The others must get an error in time, and their streams must complete. */
static void try_lost(int rank, const kiln_communicator_t *ranks, kiln_nccl_t *nccl, cudaStream_t stream) {
  kiln_error_t error = {KILN_OK, ""};
  float *values;
  EXPECT(cudaMalloc((void **)&values, BYTES) == cudaSuccess);
  nccl->deadline_ms = DEADLINE_MS;
  const double begun = kiln_nccl_now_ms();
  kiln_status_t status = begin(ranks, KILN_ALL_REDUCE, values, values, stream, 0, &error);
  if (!status && !(status = ranks->finish(ranks->self, &error)))
    status = kiln_nccl_wait(nccl, stream, &error);
  EXPECT(status == KILN_RANK_LOST);
  EXPECT(kiln_nccl_now_ms() - begun < DEADLINE_MS + 1000);
  EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
  EXPECT(cudaFree(values) == cudaSuccess);
}

static void *run(void *number) {
  const int rank = *(const int *)number;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm;
  cudaStream_t stream;
  kiln_nccl_t nccl;
  kiln_error_t error = {KILN_OK, ""};
  config.blocking = 0;
  EXPECT(cudaSetDevice(rank) == cudaSuccess && cudaStreamCreate(&stream) == cudaSuccess);
  EXPECT(kiln_nccl_is_taken(ncclCommInitRankConfig(&comm, size, id, rank, &config)));
  const kiln_communicator_t ranks = kiln_nccl_communicator(&nccl, comm, 20000);
  EXPECT(ranks.rank == (uint32_t)rank && ranks.size == (uint32_t)size && nccl.failed.status == KILN_OK);
  if (failures[rank])
    return NULL;
  for (int round = 0; round < 20; ++round)
    try_kinds(rank, &ranks, &nccl, stream);
  if (size > 1 && rank + 1 < size)
    try_lost(rank, &ranks, &nccl, stream);
  if (size == 1 || rank + 1 < size)
    kiln_nccl_release(&nccl);
  return NULL;
}

int main(void) {
  pthread_t threads[MAX_RANKS];
  int numbers[MAX_RANKS], all = 0;
  if (cudaGetDeviceCount(&size) != cudaSuccess || size == 0) {
    printf("skipped: no GPU\n");
    return 77;
  }
  size = size < MAX_RANKS ? size : MAX_RANKS;
  if (ncclGetUniqueId(&id) != ncclSuccess)
    return 1;
  for (int rank = 0; rank < size; ++rank) {
    numbers[rank] = rank;
    if (pthread_create(&threads[rank], NULL, run, &numbers[rank]))
      return 1;
  }
  for (int rank = 0; rank < size; ++rank) {
    pthread_join(threads[rank], NULL);
    all += failures[rank];
  }
  printf("%d GPUs, %d failures\n", size, all);
  return all > 0;
}
