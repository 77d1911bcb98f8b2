// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism over two single-threaded processes compared with one process with two threads: a token and a
// prompt with TinyLlama's shape, alternating in one run. Weights are zeros, which take as long as others.
//
//   mpirun -np 2 bench_ranks FILE [ROUNDS]      FILE, a sparse file of 4.4 GB, is created if it does not exist
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "kiln/communicators/mpi.h"
#include "tiny_llama.h"
#include "tiny_llama_ranks2.h"

namespace {

constexpr int64_t prompt = 128, vocabulary = 32000;

void check(kiln_status_t status, const kiln_error_t &error) {
  if (status)
    throw std::runtime_error(error.message);
}

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
};

/// Writes a safetensors file of zeros.
void makeWeights(const char *path) {
  std::vector<Tensor> tensors;
  auto add = [&](std::string name, int64_t copies, std::vector<int64_t> shape) {
    const size_t hole = name.find("{}");
    for (int64_t copy = 0; copy < copies; ++copy)
      tensors.push_back(
          {hole == std::string::npos ? name : std::string(name).replace(hole, 2, std::to_string(copy)), shape});
  };
#define ADD(name, type, copies, ...) add(name, copies, {__VA_ARGS__});
  TINY_LLAMA_WEIGHTS(ADD)
  std::string header = "{";
  int64_t end = 0;
  for (const Tensor &tensor : tensors) {
    std::string shape;
    int64_t bytes = sizeof(float);
    for (int64_t extent : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
      bytes *= extent;
    }
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(end) + "," + std::to_string(end + bytes) + "]}";
    end += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file < 0 || write(file, &length, sizeof length) < 0 || write(file, header.data(), header.size()) < 0 ||
      ftruncate(file, static_cast<off_t>(sizeof length + length) + end) < 0)
    throw std::runtime_error(std::string(path) + ": " + std::strerror(errno));
  close(file);
}

/// A barrier that does not occupy a CPU while it waits.
void meet() {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
    usleep(200);
}

double seconds(const std::function<void()> &work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A prompt, or one token after it.
#define CALL(name, NAME, model, call, isPrompt)                                                                        \
  check(isPrompt ? name##_prefill(model, &call, prompt, prompt, tokens.data(), logits.data())                          \
                 : name##_decode(model, &call, prompt + 1, tokens.data(), logits.data()),                              \
        error)

void measure(kiln_mpi_t &mpi, const char *weights, int rounds) {
  kiln_error_t error{};
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 60000);
  if (ranks.rank == 0 && access(weights, F_OK) != 0)
    makeWeights(weights);
  meet();
  kiln_options_t options{};
  options.rank = ranks.rank;
  options.ranks = ranks.size;
  tiny_llama_ranks2_t *part = nullptr;
  check(tiny_llama_ranks2_create_on(&options, &part, &error), error);
  check(tiny_llama_ranks2_bind_weights(part, weights, &error), error);
  tiny_llama_t *whole = nullptr;
  kiln_pool_t *pool = nullptr;
  if (ranks.rank == 0) {
    check(tiny_llama_create(nullptr, &whole, &error), error);
    check(tiny_llama_bind_weights(whole, weights, &error), error);
    check(tiny_llama_pool_create(2, &pool, &error), error);
  }
  const size_t bytes = std::max(TINY_LLAMA_PREFILL_ARENA_BYTES(2), TINY_LLAMA_RANKS2_PREFILL_ARENA_BYTES(1));
  const size_t rounded = (bytes + 63) / 64 * 64; // one arena each, since each has a session
  char *arenas = static_cast<char *>(std::aligned_alloc(KILN_ARENA_ALIGNMENT, 2 * rounded));
  std::memset(arenas, 0, 2 * rounded);
  std::vector<int32_t> tokens(prompt, 1);
  std::vector<float> logits(vocabulary);
  kiln_call_t together{arenas, bytes, nullptr, &error}, alone = together;
  alone.arena = arenas + rounded;
  together.communicator = &ranks;
  alone.executor = pool ? tiny_llama_pool_executor(pool) : nullptr;
  for (bool isPrompt : {true, false}) {
    std::vector<double> ofRanks, ofThreads, ratios;
    for (int round = 0; round <= rounds; ++round) {
      meet();
      const double split = seconds([&] { CALL(tiny_llama_ranks2, TINY_LLAMA_RANKS2, part, together, isPrompt); });
      meet();
      if (ranks.rank == 0 && round > 0) {
        const double one = seconds([&] { CALL(tiny_llama, TINY_LLAMA, whole, alone, isPrompt); });
        ofRanks.push_back(split);
        ofThreads.push_back(one);
        ratios.push_back(one / split);
      } else if (ranks.rank == 0) {
        CALL(tiny_llama, TINY_LLAMA, whole, alone, isPrompt);
      }
      meet();
    }
    if (ranks.rank == 0)
      std::printf("%s: two processes %.1f ms, two threads %.1f ms, %.3f times as fast\n",
                  isPrompt ? "a prompt of 128 tokens" : "a token", 1e3 * median(ofRanks), 1e3 * median(ofThreads),
                  median(ratios));
  }
  std::fflush(stdout);
  std::free(arenas);
  tiny_llama_pool_destroy(pool);
  tiny_llama_destroy(whole);
  tiny_llama_ranks2_destroy(part);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: mpirun -np 2 %s FILE [ROUNDS]\n", argv[0]);
    return 2;
  }
  kiln_mpi_t mpi;
  try {
    measure(mpi, argv[1], argc > 2 ? std::atoi(argv[2]) : 11);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  kiln_mpi_release(&mpi);
  MPI_Finalize();
}
