// SPDX-License-Identifier: Apache-2.0
/* Generates text on four ranks that share a model:
 *
 *   mpirun -np 4 cluster_write WEIGHTS.safetensors "And it came to pass" [CHARACTERS]
 *
 * All of them compute, and the first one prints: each has the same logits, so that each selects the same characters. */
#include "cluster_gpt.h"
#include "ranks.h"

enum { CONTEXT = CLUSTER_GPT_PREFILL_TOKENS_MAX, CHARACTERS = sizeof vocabulary - 1 };

static int32_t most_probable(const float *logits) {
  int32_t best = 0;
  for (int32_t i = 1; i < CHARACTERS; ++i)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

int main(int argc, char **argv) {
  static int32_t tokens[CONTEXT];
  static float logits[CHARACTERS];
  kiln_error_t error = {0};
  kiln_mpi_t mpi;
  MPI_Init(&argc, &argv);
  if (argc < 3)
    stop("usage: mpirun -np 4 cluster_write WEIGHTS TEXT [CHARACTERS]", "");
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, DEADLINE_MS);
  const kiln_options_t options = {.rank = ranks.rank, .ranks = ranks.size};
  cluster_gpt_t *model;
  check(cluster_gpt_create_on(&options, &model, &error), &error);
  check(cluster_gpt_bind_weights(model, argv[1], &error), &error);
  const size_t prefill = CLUSTER_GPT_PREFILL_ARENA_BYTES(1), decode = CLUSTER_GPT_DECODE_ARENA_BYTES(1),
               bytes = prefill > decode ? prefill : decode;
  const kiln_call_t call = {.arena = allocate(bytes), .arena_bytes = bytes, .error = &error, .communicator = &ranks};
  memset(call.arena, 0, CLUSTER_GPT_STATE_BYTES);

  int64_t length = encode(argv[2], CONTEXT, tokens), most = length + (argc > 3 ? atol(argv[3]) : 100);
  if (length == 0)
    stop("text: empty; expected one character or more", "");
  check(cluster_gpt_prefill(model, &call, length, length, tokens, logits), &error);
  for (most = most < CONTEXT ? most : CONTEXT; length < most;) {
    tokens[length++] = most_probable(logits);
    check(cluster_gpt_decode(model, &call, length, &tokens[length - 1], logits), &error);
  }
  if (ranks.rank == 0) {
    for (int64_t i = 0; i < length; ++i)
      putchar(vocabulary[tokens[i]]);
    putchar('\n');
  }
  free(call.arena);
  cluster_gpt_destroy(model);
  kiln_mpi_release(&mpi);
  MPI_Finalize();
  return 0;
}
