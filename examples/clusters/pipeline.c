/* SPDX-License-Identifier: Apache-2.0 */
/* Generates several texts with pipeline parallelism:
 *
 *   mpirun -np 2 cluster_pipeline WEIGHTS.safetensors CHARACTERS "And it came to pass" "In the beginning" ...
 *
 * The first stage has the first layers of the model, the last stage the last ones. When a stage has finished one
 * text it continues with the next, while the following stage processes the previous one: with as many texts as
 * stages all stages are busy. The last stage selects the characters, and sends them to the others. */
#include "cluster_stages.h"
#include "ranks.h"

enum { CONTEXT = CLUSTER_STAGES_PREFILL_TOKENS_MAX, CHARACTERS = sizeof vocabulary - 1 };

/* A text has a separate session: the KV caches of its layers are in its arena. */
typedef struct text_t {
  int32_t tokens[CONTEXT];
  int64_t length, done; /* done: number of tokens in the caches */
  kiln_call_t call;
} text_t;

static text_t begin(const char *words, const kiln_communicator_t *stages, kiln_error_t *error) {
  const size_t prefill = CLUSTER_STAGES_PREFILL_ARENA_BYTES(1), decode = CLUSTER_STAGES_DECODE_ARENA_BYTES(1),
               bytes = prefill > decode ? prefill : decode;
  text_t text = {.call = {.arena = allocate(bytes), .arena_bytes = bytes, .error = error, .stages = stages}};
  memset(text.call.arena, 0, CLUSTER_STAGES_STATE_BYTES);
  text.length = encode(words, CONTEXT, text.tokens);
  if (text.length == 0)
    stop("text: empty; expected one character or more", "");
  return text;
}

static int32_t most_probable(const float *logits) {
  int32_t best = 0;
  for (int32_t i = 1; i < CHARACTERS; ++i)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

/* Runs this stage; the last one appends a character to the text. */
static void go_on(const cluster_stages_t *model, text_t *text) {
  float logits[CHARACTERS];
  const kiln_communicator_t *stages = text->call.stages;
  const int last = (int)stages->size - 1;
  if (text->done == 0)
    check(cluster_stages_prefill(model, &text->call, text->length, text->length, text->tokens, logits),
          text->call.error);
  else
    check(cluster_stages_decode(model, &text->call, text->length, &text->tokens[text->done], logits), text->call.error);
  text->done = text->length;
  if ((int)stages->rank < last)
    return;
  text->tokens[text->length] = most_probable(logits);
  for (int other = 0; other < last; ++other)
    MPI_Send(&text->tokens[text->length], 1, MPI_INT32_T, other, 0, MPI_COMM_WORLD);
  ++text->length;
}

/* Receives the last stage's character. */
static void hear(text_t *text) {
  const int last = (int)text->call.stages->size - 1;
  if ((int)text->call.stages->rank < last)
    MPI_Recv(&text->tokens[text->length++], 1, MPI_INT32_T, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void print(const text_t *text) {
  for (int64_t i = 0; i < text->length; ++i)
    putchar(vocabulary[text->tokens[i]]);
  putchar('\n');
}

int main(int argc, char **argv) {
  kiln_error_t error = {0};
  kiln_mpi_t mpi;
  MPI_Init(&argc, &argv);
  if (argc < 4)
    stop("usage: mpirun -np 2 cluster_pipeline WEIGHTS CHARACTERS TEXT ...", "");
  const kiln_communicator_t stages = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, DEADLINE_MS);
  const kiln_options_t options = {.stage = stages.rank, .stages = stages.size};
  cluster_stages_t *model;
  check(cluster_stages_create_on(&options, &model, &error), &error);
  check(cluster_stages_bind_weights(model, argv[1], &error), &error);
  const int count = argc - 3;
  const int64_t characters = atol(argv[2]);
  text_t *texts = allocate((size_t)count * sizeof *texts);
  for (int i = 0; i < count; ++i) {
    texts[i] = begin(argv[3 + i], &stages, &error);
    if (characters < 1 || texts[i].length + characters > CONTEXT)
      stop("CHARACTERS: out of range; expected 1 or more, and room for them in the context after ", argv[3 + i]);
  }

  for (int64_t made = 0; made <= characters; ++made)
    for (int i = 0; i < count; ++i) {
      if (made > 0)
        hear(&texts[i]);
      if (made < characters)
        go_on(model, &texts[i]);
    }
  for (int i = 0; i < count; ++i) {
    if (stages.rank + 1 == stages.size)
      print(&texts[i]);
    free(texts[i].call.arena);
  }
  free(texts);
  cluster_stages_destroy(model);
  kiln_mpi_release(&mpi);
  MPI_Finalize();
  return 0;
}
