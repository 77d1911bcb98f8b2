// SPDX-License-Identifier: Apache-2.0
// A training step with two pipeline stages compared with the same step in one single-threaded process: `bench_stages
// WEIGHTS WINDOWS STEPS` as two processes of mpirun. Alternating; medians of the steps, each that of the slower
// process. With M micro-batches two stages of equal size are at most 2 M / (M + 1) times as fast.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>
#include <vector>

#include "char_gpt_alone.h"
#include "char_gpt_trained_stages2.h"
#include "kiln/communicators/mpi.h"
#include "steps.h"

namespace {

constexpr int64_t context = 256, vocabulary = 63, microBatches = 8;

/// The arena of one of the models.
struct Arena {
  explicit Arena(size_t needed)
      : bytes((needed + 63) / 64 * 64), data(std::aligned_alloc(KILN_ARENA_ALIGNMENT, bytes), std::free) {
    std::memset(data.get(), 0, bytes);
  }
  size_t bytes;
  std::unique_ptr<void, void (*)(void *)> data;
};

/// A barrier with the other process that does not occupy a CPU.
void meet() {
  MPI_Request request;
  int isOver = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &isOver, MPI_STATUS_IGNORE), !isOver)
    usleep(200);
}

void run(const char *weights, int64_t windows, int32_t steps) {
  kiln_mpi_t mpi;
  kiln_error_t error{};
  const kiln_communicator_t stages = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 60000);
  kiln_options_t options{};
  options.stage = stages.rank;
  options.stages = stages.size;
  char_gpt_alone_t *alone = nullptr;
  char_gpt_trained_stages2_t *staged = nullptr;
  check(char_gpt_alone_create(nullptr, &alone, &error), error);
  check(char_gpt_alone_bind_weights(alone, weights, &error), error);
  check(char_gpt_trained_stages2_create_on(&options, &staged, &error), error);
  check(char_gpt_trained_stages2_bind_weights(staged, weights, &error), error);
  const Arena aloneArena(CHAR_GPT_ALONE_TRAIN_ARENA_BYTES(1)),
      stagedArena(CHAR_GPT_TRAINED_STAGES2_TRAIN_ARENA_BYTES(1));
  const kiln_call_t aloneCall{aloneArena.data.get(), aloneArena.bytes, nullptr, &error};
  kiln_call_t stagedCall{stagedArena.data.get(), stagedArena.bytes, nullptr, &error};
  stagedCall.stages = &stages;
  std::vector<int32_t> tokens(static_cast<size_t>(microBatches * windows * context)), targets(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    targets[i] = (tokens[i] = static_cast<int32_t>(i * 17 % vocabulary)) * 5 % vocabulary;
  std::vector<double> milliseconds[2], ratios;
  for (int32_t step = 1; step <= steps + 2; ++step)
    for (const bool isStaged : {false, true}) {
      const float rate = 1e-4F;
      float loss, norm;
      meet();
      const auto begin = std::chrono::steady_clock::now();
      if (isStaged)
        check(char_gpt_trained_stages2_train(staged, &stagedCall, windows, tokens.data(), targets.data(), &rate, &step,
                                             &loss, &norm),
              error);
      else if (stages.rank == 0)
        check(
            char_gpt_alone_train(alone, &aloneCall, windows, tokens.data(), targets.data(), &rate, &step, &loss, &norm),
            error);
      double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
      meet();
      MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (step > 2)
        milliseconds[isStaged].push_back(took);
      if (step > 2 && isStaged)
        ratios.push_back(milliseconds[0].back() / milliseconds[1].back());
    }
  if (stages.rank == 0)
    std::printf("8 x %lld windows: %.1f ms in one process, %.1f ms over two stages: %.2f times as fast, at best %.2f\n",
                static_cast<long long>(windows), median(milliseconds[0]), median(milliseconds[1]), median(ratios),
                2.0 * microBatches / (microBatches + 1));
  char_gpt_alone_destroy(alone);
  char_gpt_trained_stages2_destroy(staged);
  kiln_mpi_release(&mpi);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: mpirun -np 2 bench_stages WEIGHTS WINDOWS STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  MPI_Finalize();
}
