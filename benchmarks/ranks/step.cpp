// SPDX-License-Identifier: Apache-2.0
// A data-parallel training step whose gradient all-reduces overlap with the backward pass, compared with the same step
// whose all-reduces start after all gradients are computed: `bench_step WEIGHTS WINDOWS STEPS` as two processes of
// mpirun, on this machine or on tests/ranks/network.sh. Alternating; medians of the steps, each that of the slower
// process.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "char_gpt_replicas2.h"
#include "kiln/communicators/mpi.h"
#include "steps.h"

namespace {

constexpr int context = 256, vocabulary = 63;

/// Delays all collectives until the first wait, then begins all of them.
struct Late {
  kiln_communicator_t inner;
  std::deque<kiln_collective_t> waiting;

  kiln_communicator_t get() { return {this, inner.rank, inner.size, begin, finish, nullptr}; }
  static kiln_status_t begin(void *self, const kiln_collective_t *collective, kiln_error_t *) {
    static_cast<Late *>(self)->waiting.push_back(*collective);
    return KILN_OK;
  }
  static kiln_status_t finish(void *self, kiln_error_t *error) {
    auto &[inner, waiting] = *static_cast<Late *>(self);
    kiln_status_t status = KILN_OK;
    for (; !status && !waiting.empty(); waiting.pop_front())
      status = inner.begin(inner.self, &waiting.front(), error);
    return status ? status : inner.finish(inner.self, error);
  }
};

void run(const char *weights, int64_t windows, int32_t steps) {
  kiln_mpi_t mpi;
  kiln_error_t error{};
  const kiln_communicator_t early = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 60000);
  Late deferred{early, {}};
  const kiln_communicator_t late = deferred.get();
  char_gpt_replicas2_t *model = nullptr;
  check(char_gpt_replicas2_create(nullptr, &model, &error), error);
  check(char_gpt_replicas2_bind_weights(model, weights, &error), error);
  const size_t bytes = (CHAR_GPT_REPLICAS2_TRAIN_ARENA_BYTES(1) + 63) / 64 * 64;
  const std::unique_ptr<void, void (*)(void *)> arena(std::aligned_alloc(KILN_ARENA_ALIGNMENT, bytes), std::free);
  std::memset(arena.get(), 0, bytes);
  kiln_call_t call{arena.get(), bytes, nullptr, &error};
  std::vector<int32_t> tokens(static_cast<size_t>(windows) * context), targets(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    targets[i] = (tokens[i] = static_cast<int32_t>((i * 17 + early.rank) % vocabulary)) * 5 % vocabulary;
  std::vector<double> milliseconds[2], ratios;
  for (int32_t step = 1; step <= 2 * steps + 2; ++step) {
    const float rate = 1e-4f;
    float loss, norm;
    call.replicas = step % 2 ? &early : &late;
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    check(char_gpt_replicas2_train(model, &call, windows, tokens.data(), targets.data(), &rate, &step, &loss, &norm),
          error);
    double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (step > 2)
      milliseconds[step % 2].push_back(took);
    if (step > 2 && step % 2 == 0)
      ratios.push_back(milliseconds[0].back() / milliseconds[1].back());
  }
  if (early.rank == 0)
    std::printf(
        "%lld windows each: %.1f ms with sums after the backward pass, %.1f ms with sums after it: %.2f times\n",
        static_cast<long long>(windows), median(milliseconds[1]), median(milliseconds[0]), median(ratios));
  char_gpt_replicas2_destroy(model);
  kiln_mpi_release(&mpi);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: mpirun -np 2 bench_step WEIGHTS WINDOWS STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  MPI_Finalize();
}
