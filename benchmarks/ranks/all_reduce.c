// SPDX-License-Identifier: Apache-2.0
/* Communication and memory bandwidth of ranks on this machine, for the cost model (docs/scale.md): all-reduces of 1
 * kB to 64 MB, as entries call them; the latency and bandwidth that fit all sizes, and those up to 1 MB, best; and
 * the read bandwidth when all ranks read memory.
 *
 *   mpirun -np 2 bench_all_reduce [ROUNDS]
 *
 * A time is the minimum over the rounds, each of which measures all sizes: other load on the machine only makes
 * times longer. The fit assumes latency + n / bandwidth for an all-reduce of n bytes by two ranks, and minimises the
 * squares of the relative errors. */
#include "kiln/runtime.h"

#include "kiln/communicators/mpi.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 17, IN_CACHE = 11, /* 1 MB */ MOST_ROUNDS = 101, READ_BYTES = 1 << 30 };
static const size_t smallest = 1 << 10;

static double least(const double *values, int count) {
  double value = values[0];
  for (int i = 1; i < count; ++i)
    value = fmin(value, values[i]);
  return value;
}

static void stop(const char *words) {
  fprintf(stderr, "error: %s\n", words);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Seconds of one all-reduce, averaged over several if it is short. */
static double time_sum(const kiln_communicator_t *ranks, float *data, size_t bytes) {
  const int repeats = bytes < 1 << 18 ? 50 : 1;
  const kiln_collective_t sum = {
      .kind = KILN_ALL_REDUCE, .element = KILN_F32, .from = data, .to = data, .elements = bytes / sizeof *data};
  kiln_error_t error = {0};
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < repeats; ++i)
    if (ranks->begin(ranks->self, &sum, &error) || ranks->finish(ranks->self, &error))
      stop(error.message);
  return (MPI_Wtime() - begin) / repeats;
}

static double time_reading(const uint64_t *data, size_t count, uint64_t *sum) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (size_t i = 0; i < count; ++i)
    *sum += data[i];
  return MPI_Wtime() - begin;
}

/* Fits latency + bytes / bandwidth to the first sizes, by the normal equations of the relative errors. */
static void fit(const double *times, int count, double *latency, double *bandwidth) {
  double a = 0, b = 0, c = 0, x = 0, y = 0;
  for (int i = 0; i < count; ++i) {
    const double weight = 1 / (times[i] * times[i]), n = (double)(smallest << i);
    a += weight, b += weight * n, c += weight * n * n;
    x += weight * times[i], y += weight * n * times[i];
  }
  *latency = (c * x - b * y) / (a * c - b * b);
  *bandwidth = (a * c - b * b) / (a * y - b * x);
}

static void print_fit(const double *times, int count) {
  double latency, bandwidth, squares = 0, worst = 0;
  fit(times, count, &latency, &bandwidth);
  for (int i = 0; i < count; ++i) {
    const double error = (latency + (double)(smallest << i) / bandwidth) / times[i] - 1;
    squares += error * error;
    worst = fmax(worst, fabs(error));
  }
  printf("up to %zu kB: latency %.2f us, bandwidth %.2f GB/s; error %.0f %% in the mean square, %.0f %% at most\n",
         (smallest << (count - 1)) >> 10, 1e6 * latency, 1e-9 * bandwidth, 100 * sqrt(squares / count), 100 * worst);
}

static void print_sums(double (*times)[MOST_ROUNDS], int rounds) {
  double fastest[SIZES];
  for (int i = 0; i < SIZES; ++i) {
    fastest[i] = least(times[i], rounds);
    printf("%8zu kB %10.1f us\n", (smallest << i) >> 10, 1e6 * fastest[i]);
  }
  print_fit(fastest, SIZES);
  print_fit(fastest, IN_CACHE);
}

int main(int argc, char **argv) {
  static double times[SIZES][MOST_ROUNDS], reading[MOST_ROUNDS];
  MPI_Init(&argc, &argv);
  kiln_mpi_t mpi;
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 60000);
  const int wanted = argc > 1 ? atoi(argv[1]) : 21, rounds = wanted < 1 || wanted > MOST_ROUNDS ? 21 : wanted;
  float *data = malloc(smallest << (SIZES - 1));
  uint64_t *read = malloc(READ_BYTES), sum = 0;
  if (!data || !read)
    stop("no memory");
  memset(data, 0, smallest << (SIZES - 1));
  memset(read, 1, READ_BYTES);
  for (int round = -1; round < rounds; ++round) { /* the first one is a warm-up */
    for (int i = 0; i < SIZES; ++i)
      times[i][round < 0 ? 0 : round] = time_sum(&ranks, data, smallest << i);
    reading[round < 0 ? 0 : round] = time_reading(read, READ_BYTES / sizeof *read, &sum);
  }
  if (ranks.rank == 0) {
    print_sums(times, rounds);
    printf("each of %u ranks reads %.1f GB/s%s\n", ranks.size, 1e-9 * READ_BYTES / least(reading, rounds),
           sum ? "" : " of bytes that it did not write");
  }
  free(data);
  free(read);
  kiln_mpi_release(&mpi);
  MPI_Finalize();
  return 0;
}
