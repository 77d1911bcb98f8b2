// SPDX-License-Identifier: Apache-2.0
// Two processes that write together, each of which also writes alone: `written` under mpirun, with the folder of the
// examples.
#include "char_gpt.h"
#include "char_gpt_ranks2.h"
#include "kiln/communicators/mpi.h"
#include "writer.h"

using namespace kiln::test;
WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);

int main(int argc, char **argv) {
  constexpr size_t vocabulary = 63;
  int all = 0;
  MPI_Init(&argc, &argv);
  kiln_mpi_t mpi;
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  const std::string weights = std::string(argv[1]) + "/char_gpt/char_gpt.safetensors";
  std::vector<int32_t> tokens(64);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>((i * 17 + 5) % vocabulary);
  int isWrong = 1;
  try {
    const double error = distance(write<::char_gpt_ranks2>(weights, tokens, vocabulary, &ranks),
                                  write<::char_gpt>(weights, tokens, vocabulary));
    std::printf("rank %u of %u: %g from what one process writes\n", ranks.rank, ranks.size, error);
    isWrong = !(error < 3e-6);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "rank %u of %u: %s\n", ranks.rank, ranks.size, failure.what());
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
