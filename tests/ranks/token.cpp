// SPDX-License-Identifier: Apache-2.0
// Measures the time per token with two or four distant ranks, each on a separate node: `token FOLDER_OF_EXAMPLES
// DELAY_US TOKENS` on network.c. Each collective must take at least the delay, otherwise the simulated network does not
// work. Nothing else is required; the program prints the times.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "char_gpt_ranks2.h"
#include "char_gpt_ranks4.h"
#include "kiln/communicators/mpi.h"
#include "writer.h"

using namespace kiln::test;

WRITER(char_gpt_ranks2, CHAR_GPT_RANKS2);
WRITER(char_gpt_ranks4, CHAR_GPT_RANKS4);

namespace {

constexpr int vocabulary = 63;
kiln_mpi_t mpi;
int begun = 0; // collectives

kiln_status_t count(void *self, const kiln_collective_t *collective, kiln_error_t *error) {
  ++begun;
  return kiln_mpi_begin(self, collective, error);
}

/// Returns the seconds of each token except the first.
template <class Api> std::vector<double> decode(const char *folder, const kiln_communicator_t &ranks, int tokens) {
  kiln_error_t error{};
  kiln_options_t options{};
  options.rank = ranks.rank;
  options.ranks = ranks.size;
  typename Api::Model *model = nullptr;
  auto check = [&](kiln_status_t status) {
    if (status)
      throw std::runtime_error(error.message);
  };
  check(Api::create(&options, &model, &error));
  check(Api::bind(model, (std::string(folder) + "/char_gpt/char_gpt.safetensors").c_str(), &error));
  const Memory arena(Api::arenaBytes / 64 * 64);
  check(Api::begin(model, arena.data, &error));
  kiln_call_t call{arena.data, arena.bytes, nullptr, &error};
  call.communicator = &ranks;
  std::vector<float> logits(vocabulary);
  std::vector<double> seconds;
  for (int32_t at = 0; at <= tokens; ++at) {
    const auto begin = std::chrono::steady_clock::now();
    const int32_t token = at % vocabulary;
    begun = 0;
    check(Api::decode(model, &call, at + 1, &token, logits.data()));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  Api::destroy(model);
  return {seconds.begin() + 1, seconds.end()};
}

} // namespace

int main(int argc, char **argv) {
  int isWrong = 1, all = 0;
  MPI_Init(&argc, &argv);
  kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  ranks.begin = count;
  try {
    const double delay = std::atoi(argv[2]) * 1e-6;
    std::vector<double> seconds =
        (ranks.size == 4 ? decode<::char_gpt_ranks4> : decode<::char_gpt_ranks2>)(argv[1], ranks, std::atoi(argv[3]));
    std::sort(seconds.begin(), seconds.end());
    const double least = seconds[0], median = seconds[seconds.size() / 2], most = seconds.back(),
                 mean = std::accumulate(seconds.begin(), seconds.end(), 0.) / static_cast<double>(seconds.size());
    if (ranks.rank == 0)
      std::printf("%u ranks, %d collectives a token, %g ms one way: median %.2f ms, mean %.2f, least %.2f, most %.2f\n",
                  ranks.size, begun, 1e3 * delay, 1e3 * median, 1e3 * mean, 1e3 * least, 1e3 * most);
    isWrong = begun == 0 || least < begun * delay;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "rank %u of %u: %s\n", ranks.rank, ranks.size, failure.what());
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all > 0;
}
