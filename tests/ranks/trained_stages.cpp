// SPDX-License-Identifier: Apache-2.0
// Three pipeline stages of a training: `trained_stages` under mpirun. The last process also trains without the others
// and compares losses and norms. `trained_stages killed|hangs DEADLINE_MS`: the last stage is lost before its third
// step; the others print what lost.c prints, and lost.sh reads it.
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include "kiln/communicators/mpi.h"
#include "lost_stage.h"
#include "trained.h"
#include "trained4.h"
#include "trained4_stages3.h"

using namespace kiln::test;

namespace {

KILN_TRAINED(trained4, TRAINED4);
KILN_TRAINED(trained4_stages3, TRAINED4_STAGES3);

bool isNear(const std::vector<float> &got, const std::vector<float> &wanted) {
  for (size_t i = 0; i < 2 * steps; ++i)
    if (!(std::abs(got[i] - wanted[i]) <= 1e-4F * std::abs(wanted[i]) + 1e-5F)) {
      std::printf("step %zu: %s %g, expected %g\n", i / 2 + 1, i % 2 ? "norm" : "loss", got[i], wanted[i]);
      return false;
    }
  return true;
}

int trainUntilLost(const char *how, kiln_mpi_t &mpi, const kiln_communicator_t &stages, unsigned deadlineMs) {
  const Inputs inputs(1, 4);
  // Not destroyed: a communicator that failed may still use the buffers.
  auto &process = *new TrainedProcess<trained4_stages3>(inputs, {.stages = &stages});
  process.train(2);
  mpi.deadline_ms = deadlineMs;
  if (stages.rank + 1 == stages.size) {
    if (std::strcmp(how, "killed") == 0)
      raise(SIGKILL);
    usleep((deadlineMs + 3000) * 1000);
    _exit(0);
  }
  const double begin = MPI_Wtime();
  const kiln_status_t status = process.step();
  const double found = MPI_Wtime();
  const std::string words = process.error.message;
  const kiln_status_t second = process.step();
  return tellOfLost(stages, deadlineMs, begin, found, status, second, words);
}

} // namespace

int main(int argc, char **argv) {
  int isWrong = 0, all = 0;
  MPI_Init(&argc, &argv);
  static kiln_mpi_t mpi;
  const kiln_communicator_t stages = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  if (argc == 3) // skips MPI_Finalize, which waits for the lost rank, and exit handlers
    _exit(trainUntilLost(argv[1], mpi, stages, static_cast<unsigned>(std::atoi(argv[2]))));
  const Inputs inputs(1, 4);
  const std::vector<float> got = train<trained4_stages3>(inputs, {.stages = &stages});
  if (stages.rank + 1 == stages.size) {
    isWrong = !isNear(got, train<trained4>(inputs));
    std::printf("stage %u of %u trains %s one process\n", stages.rank, stages.size, isWrong ? "unlike" : "as");
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
