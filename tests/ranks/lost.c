/* SPDX-License-Identifier: Apache-2.0 */
/* The last rank is killed, hangs, or has its node cut off (network.c): lost killed|hangs|cut DEADLINE_MS. Each other
 * rank, and also one that is cut off, prints a line when it detects the loss, and exits by itself. The line says "late"
 * if that took over a second more than the deadline. lost.sh reads these lines. */
#include "kiln/communicators/mpi.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000 };

/* An all-reduce of ones. */
static kiln_status_t reduce(const kiln_communicator_t *ranks, float *values, kiln_error_t *error) {
  const kiln_collective_t sum = {
      .kind = KILN_ALL_REDUCE, .element = KILN_F32, .from = values, .to = values, .elements = COUNT};
  for (int i = 0; i < COUNT; ++i)
    values[i] = 1;
  kiln_status_t status = ranks->begin(ranks->self, &sum, error);
  return status ? status : ranks->finish(ranks->self, error);
}

/* Runs on the rank that is lost. It returns only if the rank is cut off. */
static void be_lost(const char *how, unsigned deadline_ms) {
  const char *network = getenv("KILN_NETWORK");
  if (strcmp(how, "killed") == 0)
    raise(SIGKILL);
  if (strcmp(how, "cut") == 0 && network) {
    kill((pid_t)atoi(network), SIGUSR1);
    usleep(200000); /* until no packet gets through any more */
    return;
  }
  usleep((deadline_ms + 3000) * 1000);
  _exit(0);
}

static int find_out(const kiln_communicator_t *ranks, float *values, unsigned deadline_ms) {
  kiln_error_t error = {KILN_OK, ""}, again = {KILN_OK, ""};
  const double begin = MPI_Wtime();
  const kiln_status_t status = reduce(ranks, values, &error);
  const double found = MPI_Wtime();
  const kiln_status_t second = reduce(ranks, values, &again);
  const double took = found - begin, took_again = MPI_Wtime() - found;
  const int is_late = took > deadline_ms / 1000. + 1 || took_again > 0.1;
  const int is_alike = strcmp(error.message, again.message) == 0;
  char line[512];
  const int length =
      snprintf(line, sizeof line, "rank %u: status %d after %.2f s, then %d%s%s: %s\n", ranks->rank, (int)status, took,
               (int)second, is_late ? ", late" : "", is_alike ? "" : ", with other words", error.message);
  return write(STDOUT_FILENO, line, (size_t)length) == length ? 0 : 1;
}

int main(int argc, char **argv) {
  static float values[COUNT]; /* static, since a failed communicator may still use it */
  kiln_mpi_t mpi;
  kiln_error_t error = {KILN_OK, ""};
  if (argc != 3 || MPI_Init(&argc, &argv))
    return 2;
  const unsigned deadline_ms = (unsigned)atoi(argv[2]);
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  if (reduce(&ranks, values, &error) || values[COUNT - 1] != (float)ranks.size) {
    fprintf(stderr, "rank %u: the first sum failed: %s\n", ranks.rank, error.message);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  mpi.deadline_ms = deadline_ms;
  if (ranks.rank + 1 == ranks.size)
    be_lost(argv[1], deadline_ms);
  const int result = find_out(&ranks, values, deadline_ms);
  kiln_mpi_release(&mpi);
  /* Calls neither MPI_Finalize, which waits for the lost rank, nor exit handlers. */
  _exit(result);
}
