// SPDX-License-Identifier: Apache-2.0
// Two or three pipeline stages of a model: `staged` under mpirun. The last process also decodes without the others and
// compares bits. `staged killed|hangs DEADLINE_MS`: the last stage is lost at its second call; the others print what
// lost.c prints, and which call detected the loss; lost.sh reads it.
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include "char_gpt.h"
#include "char_gpt_stages2.h"
#include "gpt2_stages3.h"
#include "gpt2_writer.h"
#include "kiln/communicators/mpi.h"
#include "lost_stage.h"
#include "writer.h"

using namespace kiln::test;
WRITER(char_gpt, CHAR_GPT);
WRITER(char_gpt_stages2, CHAR_GPT_STAGES2);
WRITER(gpt2_writer, GPT2_WRITER);
WRITER(gpt2_stages3, GPT2_STAGES3);

namespace {

template <class One, class Staged>
bool isSame(const std::string &weights, size_t vocabulary, const kiln_communicator_t &stages) {
  std::vector<int32_t> tokens(64);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>((i * 17 + 5) % vocabulary);
  const std::vector<float> got = write<Staged>(weights, tokens, vocabulary, nullptr, &stages);
  if (stages.rank + 1 < stages.size)
    return true;
  const std::vector<float> wanted = write<One>(weights, tokens, vocabulary);
  const bool isSame = std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0;
  std::printf("stage %u of %u writes %s bits\n", stages.rank, stages.size, isSame ? "the same" : "other");
  return isSame;
}

/// Runs prompts until a call fails, at most ten. The prompts are too long for MPI's eager protocol.
int writeUntilLost(const char *how, kiln_mpi_t &mpi, const kiln_communicator_t &stages, unsigned deadlineMs) {
  kiln_error_t error{};
  kiln_options_t options{};
  options.stage = stages.rank;
  options.stages = stages.size;
  ::gpt2_stages3_t *model = nullptr;
  constexpr int64_t prompt = 64;
  const std::vector<int32_t> tokens(prompt);
  static std::vector<float> logits(2000); // static: a communicator that failed may still use it
  auto *arena = new Memory((GPT2_STAGES3_PREFILL_ARENA_BYTES(1) + 63) / 64 * 64);
  std::memset(arena->data, 0, GPT2_STAGES3_STATE_BYTES);
  kiln_call_t call{arena->data, arena->bytes, nullptr, &error};
  call.stages = &stages;
  if (gpt2_stages3_create_on(&options, &model, &error) ||
      gpt2_stages3_bind_weights(model, KILN_EXAMPLES "/gpt2/king_james/model.safetensors", &error))
    return 1;
  kiln_status_t status = KILN_OK;
  double begin = 0;
  for (int at = 0; !status && at < 10; ++at) {
    if (at == 1)
      mpi.deadline_ms = deadlineMs;
    if (at == 1 && stages.rank + 1 == stages.size) {
      if (std::strcmp(how, "killed") == 0)
        raise(SIGKILL);
      usleep((deadlineMs + 3000) * 1000);
      _exit(0);
    }
    begin = MPI_Wtime();
    status = gpt2_stages3_prefill(model, &call, prompt, prompt, tokens.data(), logits.data());
  }
  const double found = MPI_Wtime();
  const std::string words = error.message;
  const kiln_status_t second = gpt2_stages3_prefill(model, &call, prompt, prompt, tokens.data(), logits.data());
  if (words.rfind("prefill", 0) != 0)
    return 1;
  return tellOfLost(stages, deadlineMs, begin, found, status, second, words);
}

} // namespace

int main(int argc, char **argv) {
  int isWrong = 1, all = 0;
  MPI_Init(&argc, &argv);
  static kiln_mpi_t mpi;
  const kiln_communicator_t stages = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 20000);
  if (argc == 3) // skips MPI_Finalize, which waits for the lost rank, and exit handlers
    _exit(writeUntilLost(argv[1], mpi, stages, static_cast<unsigned>(std::atoi(argv[2]))));
  const std::string examples = KILN_EXAMPLES;
  try {
    isWrong =
        !(stages.size == 2
              ? isSame<::char_gpt, ::char_gpt_stages2>(examples + "/char_gpt/char_gpt.safetensors", 63, stages)
              : isSame<::gpt2_writer, ::gpt2_stages3>(examples + "/gpt2/king_james/model.safetensors", 2000, stages));
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "stage %u of %u: %s\n", stages.rank, stages.size, failure.what());
  }
  kiln_mpi_release(&mpi);
  MPI_Allreduce(&isWrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all;
}
