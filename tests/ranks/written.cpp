// SPDX-License-Identifier: Apache-2.0
// Two or four ranks that decode together, each of which also decodes by itself; two ranks also save their weights
// together: `written` under mpirun, with the folder of the examples.
#include <filesystem>
#include <unistd.h>

#include "../read_file.h"
#include "char_gpt.h"
#include "char_gpt_ranks2.h"
#include "char_gpt_ranks4.h"
#include "kiln/communicators/mpi.h"
#include "writer.h"

using namespace kiln::test;
using kiln::testing::readFile;
WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);
WRITER(char_gpt_ranks4, CHAR_GPT_RANKS4);

/// Whether ranks save the same bytes as one process. Only rank 0 knows, which has the files.
static bool savesTheSame(const std::string &weights, const kiln_communicator_t &ranks) {
  const std::string path = std::filesystem::temp_directory_path() / ("kiln_written_" + std::to_string(getpid()));
  kiln_error_t error{};
  auto check = [&](kiln_status_t status) {
    if (status)
      throw std::runtime_error(error.message);
  };
  const kiln_options_t options = {.rank = ranks.rank, .ranks = ranks.size};
  ::char_gpt_ranks2_t *model = nullptr;
  check(char_gpt_ranks2_create_on(&options, &model, &error));
  const std::unique_ptr<::char_gpt_ranks2_t, void (*)(::char_gpt_ranks2_t *)> owner(model, char_gpt_ranks2_destroy);
  check(char_gpt_ranks2_bind_weights(model, weights.c_str(), &error));
  kiln_call_t call{};
  call.error = &error;
  call.communicator = &ranks;
  check(char_gpt_ranks2_save_weights_together(model, &call, path.c_str()));
  if (ranks.rank != 0)
    return true;
  ::char_gpt_t *one = nullptr;
  check(char_gpt_create(nullptr, &one, &error));
  const std::unique_ptr<::char_gpt_t, void (*)(::char_gpt_t *)> oneOwner(one, char_gpt_destroy);
  check(char_gpt_bind_weights(one, weights.c_str(), &error));
  check(char_gpt_save_weights(one, (path + ".one").c_str(), &error));
  const bool isSame = readFile(path) == readFile(path + ".one");
  std::printf("the file of two ranks is %s that of one\n", isSame ? "as" : "not");
  return std::filesystem::remove(path) && std::filesystem::remove(path + ".one") && isSame;
}

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
    const auto together = ranks.size == 4 ? write<::char_gpt_ranks4> : write<::char_gpt_ranks2>;
    const double error = distance(together(weights, tokens, vocabulary, &ranks, nullptr),
                                  write<::char_gpt>(weights, tokens, vocabulary));
    std::printf("rank %u of %u: %g from what one process writes\n", ranks.rank, ranks.size, error);
    isWrong = !(error < 3e-6) || (ranks.size == 2 && !savesTheSame(weights, ranks));
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "rank %u of %u: %s\n", ranks.rank, ranks.size, failure.what());
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
