// SPDX-License-Identifier: Apache-2.0
/* Training steps on four ranks that share the model's weights, gradients and optimiser state:
 *
 *   mpirun -np 4 cluster_train TEXT.txt [STEPS [FILE]]
 *
 * Each rank samples the same windows of the text, and all compute the same loss, which the first one prints. With
 * FILE, which all ranks can access, the training is saved there every hundred steps and at its end, and resumes from
 * it. */
#include "cluster_gpt_train.h"
#include "ranks.h"

#include "../support/first_weights.h"
#include <math.h>
#include <unistd.h>

enum { CONTEXT = 256, WINDOWS = 4, SAVED = 100 };

static float first_value(random_t *random, const char *name, int rank, const long *shape) {
  (void)shape;
  const size_t length = strlen(name);
  if (rank < 2)
    return length >= 4 && strcmp(name + length - 4, "bias") == 0 ? 0.0f : 1.0f;
  return (float)(0.04 * random_normal(random));
}

/* The image has the whole model; a rank takes its shards. */
static void bind_first_weights(cluster_gpt_train_t *model, kiln_error_t *error) {
  first_weights_t file = {.value = first_value, .random = {1611}};
#define ADD(...) FIRST_WEIGHTS_ADD(&file, __VA_ARGS__)
  CLUSTER_GPT_TRAIN_WEIGHTS(ADD)
  const void *image = first_weights_image(&file);
  check(cluster_gpt_train_bind_weights_from_memory(model, image, file.bytes, error), error);
  first_weights_release(&file);
}

/* Returns the characters of a file that are in the vocabulary, as tokens; others are dropped. */
static int64_t read_text(const char *path, int32_t **tokens) {
  FILE *file = fopen(path, "rb");
  if (!file)
    stop("cannot read ", path);
  int64_t count = 0, room = 1 << 16;
  *tokens = malloc((size_t)room * sizeof **tokens);
  for (int c; (c = getc(file)) != EOF;) {
    const char *at = c ? strchr(vocabulary, c) : NULL;
    if (!at)
      continue;
    if (count == room)
      *tokens = realloc(*tokens, (size_t)(room *= 2) * sizeof **tokens);
    if (!*tokens)
      stop("no memory for the text", "");
    (*tokens)[count++] = (int32_t)(at - vocabulary);
  }
  fclose(file);
  if (count < CONTEXT + 2)
    stop("text: too short; expected at least 258 characters of the vocabulary, got fewer in ", path);
  return count;
}

int main(int argc, char **argv) {
  static int32_t tokens[WINDOWS * CONTEXT], targets[WINDOWS * CONTEXT], *text;
  kiln_error_t error = {0};
  kiln_mpi_t mpi;
  MPI_Init(&argc, &argv);
  if (argc < 2)
    stop("usage: mpirun -np 4 cluster_train TEXT [STEPS [FILE]]", "");
  const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, DEADLINE_MS);
  const kiln_options_t options = {.rank = ranks.rank, .ranks = ranks.size};
  const int64_t count = read_text(argv[1], &text);
  const int32_t steps = argc > 2 ? atoi(argv[2]) : 1000;
  const char *saved = argc > 3 ? argv[3] : NULL;
  kiln_training_t training = {0, 1611};
  cluster_gpt_train_t *model;
  check(cluster_gpt_train_create_on(&options, &model, &error), &error);
  bind_first_weights(model, &error);
  const size_t bytes = CLUSTER_GPT_TRAIN_TRAIN_ARENA_BYTES(1);
  const kiln_call_t call = {.arena = allocate(bytes), .arena_bytes = bytes, .error = &error, .communicator = &ranks};
  memset(call.arena, 0, CLUSTER_GPT_TRAIN_TRAINING_BYTES);
  if (saved && access(saved, F_OK) == 0)
    check(cluster_gpt_train_load_training(model, call.arena, &training, saved, &error), &error);
  while (training.step < steps) {
    const int32_t step = ++training.step;
    random_t random = random_of_step(training.seed, step);
    for (int window = 0; window < WINDOWS; ++window) {
      const int32_t *from = text + random_bits(&random) % (uint64_t)(count - CONTEXT);
      memcpy(tokens + window * CONTEXT, from, CONTEXT * sizeof *from);
      memcpy(targets + window * CONTEXT, from + 1, CONTEXT * sizeof *from);
    }
    const float rate = 1e-3f;
    float loss, norm;
    check(cluster_gpt_train_train(model, &call, WINDOWS, tokens, targets, &rate, &step, &loss, &norm), &error);
    if (ranks.rank == 0 && (step == 1 || step % 10 == 0 || step == steps))
      printf("step %d: %.4f bits per character\n", step, loss / log(2));
    if (saved && (step % SAVED == 0 || step == steps))
      check(cluster_gpt_train_save_training_together(model, &call, &training, saved), &error);
  }
  free(text);
  free(call.arena);
  cluster_gpt_train_destroy(model);
  kiln_mpi_release(&mpi);
  MPI_Finalize();
  return 0;
}
