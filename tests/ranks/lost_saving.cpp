// SPDX-License-Identifier: Apache-2.0
// The last rank is killed or hangs while all ranks save: lost_saving killed|hangs DEADLINE_MS. The other ranks print
// what lost.c prints if the file is still the one saved before; lost.sh reads it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>

#include "../read_file.h"
#include "char_gpt_ranks2.h"
#include "kiln/communicators/mpi.h"

namespace {

/// A communicator whose rank is lost after `left` more collectives.
struct Losing {
  kiln_communicator_t own;
  const char *how;
  unsigned deadlineMs;
  int left;

  static kiln_status_t begin(void *self, const kiln_collective_t *collective, kiln_error_t *error) {
    auto &losing = *static_cast<Losing *>(self);
    if (losing.left-- > 0)
      return losing.own.begin(losing.own.self, collective, error);
    if (std::strcmp(losing.how, "killed") == 0)
      raise(SIGKILL);
    usleep((losing.deadlineMs + 3000) * 1000);
    _exit(0);
  }
  static kiln_status_t finish(void *self, kiln_error_t *error) {
    auto &losing = *static_cast<Losing *>(self);
    return losing.own.finish(losing.own.self, error);
  }
};

using kiln::testing::readFile;

char_gpt_ranks2_t *makeModel(const kiln_communicator_t &ranks) {
  kiln_error_t error{};
  kiln_options_t options{};
  options.rank = ranks.rank;
  options.ranks = ranks.size;
  char_gpt_ranks2_t *model = nullptr;
  if (char_gpt_ranks2_create_on(&options, &model, &error) ||
      char_gpt_ranks2_bind_weights(model, KILN_EXAMPLES "/char_gpt/char_gpt.safetensors", &error)) {
    std::fprintf(stderr, "rank %u: %s\n", ranks.rank, error.message);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return model;
}

/// Saves twice after the rank is lost, and prints the outcome.
int findOut(const char_gpt_ranks2_t *model, const kiln_call_t &call, const std::string &path, unsigned deadlineMs) {
  const std::string before = readFile(path);
  const double begin = MPI_Wtime();
  const kiln_status_t status = char_gpt_ranks2_save_weights_together(model, &call, path.c_str());
  const double found = MPI_Wtime();
  const std::string words = call.error->message;
  const kiln_status_t second = char_gpt_ranks2_save_weights_together(model, &call, path.c_str());
  const bool isLate = found - begin > deadlineMs / 1000. + 1 || MPI_Wtime() - found > 0.1;
  const bool isKept = !before.empty() && readFile(path) == before;
  const size_t at = words.find("a rank did not");
  std::printf("rank %u: status %d after %.2f s, then %d%s%s: %s\n", call.communicator->rank, static_cast<int>(status),
              found - begin, static_cast<int>(second), isLate ? ", late" : "", isKept ? "" : ", with another file",
              at == std::string::npos ? words.c_str() : words.c_str() + at);
  std::filesystem::remove(path);
  return std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  kiln_mpi_t mpi;
  kiln_error_t error{};
  if (argc != 3 || MPI_Init(&argc, &argv))
    return 2;
  const auto deadlineMs = static_cast<unsigned>(std::atoi(argv[2]));
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  const char_gpt_ranks2_t *model = makeModel(ranks);
  const std::string path = std::filesystem::temp_directory_path() / ("kiln_lost_" + std::to_string(getpid()));
  kiln_call_t call{};
  call.error = &error;
  call.communicator = &ranks;
  if (char_gpt_ranks2_save_weights_together(model, &call, path.c_str())) {
    std::fprintf(stderr, "rank %u: the first file failed: %s\n", ranks.rank, error.message);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  mpi.deadline_ms = deadlineMs;
  Losing losing{ranks, argv[1], deadlineMs, 9};
  const kiln_communicator_t last{&losing, ranks.rank, ranks.size, Losing::begin, Losing::finish};
  if (ranks.rank + 1 == ranks.size)
    call.communicator = &last;
  // Calls neither MPI_Finalize, which waits for the lost rank, nor exit handlers.
  _exit(findOut(model, call, path, deadlineMs));
}
