// SPDX-License-Identifier: Apache-2.0
/* Ranks write one file of what they have slices of, which is that of a library for one process:
 *
 *   1. Rank 0 begins the file, beside the one that it takes the place of.
 *   2. Of each tensor, a piece at a time, the ranks send their parts to rank 0, which writes the piece.
 *   3. Behind each piece all ranks tell each other how they are: where one has failed all end, with its status.
 *   4. Rank 0 gives the file its name, and says so.
 *
 * So no rank waits for one that has given up, or for longer than a piece takes. */
#include "internal.h"

#include <string.h>

/* PIECE: of a whole tensor. KEPT: as much is on its way to the disk, so that the end of the file takes no longer. */
enum { PIECE_BYTES = 1 << 22, KEPT_BYTES = 1 << 26 };

/* What ranks tell each other: whether one has failed, then why. */
enum { TOLD_NUMBERS = sizeof(kiln_error_t) / sizeof(int32_t) };
typedef union told_t {
  int32_t numbers[TOLD_NUMBERS];
  kiln_error_t error;
} told_t;

/* A call of a rank. What a communicator is given is memory of its own, which stays when that fails: it may still be
 * written to. */
typedef struct together_t {
  const kiln_contents_t *contents;
  const kiln_communicator_t *communicator;
  const char *function, *path;
  const kiln_output_t *output; /* of rank 0, while there is a file */
  uint64_t unkept;             /* bytes of it */
  char *piece;                 /* rank 0's: some of a whole tensor */
  char *part;                  /* what one rank has of that, side by side */
  told_t *told;
  kiln_error_t own; /* how this one is; at the end, all of them */
  bool is_over;     /* a failure is known to all */
  bool is_lost;     /* nobody can be reached */
} together_t;

/* The communicator failed, so that nobody can be told. */
static kiln_status_t lose(together_t *together, kiln_status_t status, const char *words) {
  const kiln_communicator_t *communicator = together->communicator;
  together->is_over = together->is_lost = true;
  return kiln_error_set(&together->own, status, "%s on rank %u of %u cannot finish: %s", together->function,
                        communicator->rank, communicator->size, words[0] ? words : "no words from the communicator");
}

/* The sum over all ranks takes the place of what is told. */
static kiln_status_t add_up(together_t *together, uint64_t count) {
  kiln_error_t words = {KILN_OK, ""};
  int32_t *numbers = together->told->numbers;
  const kiln_collective_t collective = {
      .kind = KILN_ALL_REDUCE, .element = KILN_I32, .from = numbers, .to = numbers, .elements = count};
  const kiln_status_t status = kiln_ranks_do(together->communicator, &collective, &words);
  return status ? lose(together, status, words.message) : KILN_OK;
}

/* How many ranks have failed is asked first, then each of them for its words, until one has some: these become all
 * ranks'. */
static kiln_status_t agree(together_t *together) {
  const kiln_communicator_t *communicator = together->communicator;
  told_t *told = together->told;
  told->numbers[0] = together->own.status != KILN_OK;
  kiln_status_t status = add_up(together, 1);
  if (status || told->numbers[0] == 0)
    return status;
  for (uint32_t rank = 0; !together->is_over && rank < communicator->size; ++rank) {
    memset(told, 0, sizeof *told);
    if (rank == communicator->rank)
      told->error = together->own;
    if ((status = add_up(together, TOLD_NUMBERS)) || told->error.status == KILN_OK)
      continue;
    together->is_over = true;
    status = kiln_error_set(&together->own, told->error.status, "%s failed on rank %u of %u: %s", together->function,
                            rank, communicator->size, told->error.message);
  }
  return status;
}

/* What a reader of own elements has. */
typedef struct kept_t {
  const kiln_contents_t *contents;
  uint32_t index, copy;
} kept_t;

static kiln_status_t read_kept(const void *context, uint64_t first, uint64_t count, void *values, kiln_error_t *error) {
  const kept_t *kept = context;
  return kiln_contents_read(kept->contents, kept->index, kept->copy, first, count, values, error);
}

static void write_piece(together_t *together, uint64_t bytes) {
  kiln_error_t *error = &together->own;
  if (!together->output || error->status || kiln_file_write(together->output, together->piece, bytes, error))
    return;
  together->unkept += bytes;
  if (together->unkept >= KEPT_BYTES) {
    together->unkept = 0;
    (void)kiln_file_keep(together->output, error);
  }
}

/* A tensor that is split or, of rank 0, whole. */
static kiln_status_t write_copy(together_t *together, uint32_t index, uint32_t copy) {
  const kiln_descriptor_t *descriptor = together->contents->model->descriptor;
  const kept_t kept = {together->contents, index, copy};
  const kiln_weight_t *tensor = kiln_kept_tensor(descriptor, index);
  const kiln_slices_t slices = {together->communicator, tensor, &descriptor->shards[index], read_kept, &kept};
  const bool is_split = slices.shard->section_count > 0;
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, 1), step = PIECE_BYTES / bytes;
  const uint64_t all =
      is_split ? kiln_whole_elements(tensor, slices.shard) : kiln_elements_beside(tensor, tensor->rank);
  kiln_error_t words = {KILN_OK, ""};
  kiln_status_t status = KILN_OK;
  for (uint64_t begin = 0, end; !status && begin < all; begin = end) {
    end = all - begin < step ? all : begin + step;
    if (!is_split && together->output)
      (void)read_kept(&kept, begin, end - begin, together->piece, &together->own);
    if (is_split &&
        (status = kiln_slices_gather(&slices, begin, end, together->piece, together->part, &together->own, &words)))
      return lose(together, status, words.message);
    write_piece(together, (end - begin) * bytes);
    status = agree(together);
  }
  return status;
}

/* The file of rank 0; with a null output, what the others have for it. */
static kiln_status_t write_contents(together_t *together, const kiln_output_t *output) {
  const kiln_contents_t *contents = together->contents;
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  together->output = output;
  if (output)
    (void)kiln_contents_begin(contents, output, &together->own);
  kiln_status_t status = agree(together);
  for (uint32_t i = 0; i < descriptor->weight_count + descriptor->state_count; ++i)
    for (uint32_t copy = 0; !status && kiln_contents_has(contents, i) && copy < kiln_kept_tensor(descriptor, i)->copies;
         ++copy)
      status = write_copy(together, i, copy);
  if (!status && output)
    status = kiln_contents_end(contents, output, &together->own);
  together->output = NULL;
  return status;
}

static kiln_status_t write_file(const void *context, const kiln_output_t *output, kiln_error_t *error) {
  (void)error; /* which is together->own */
  return write_contents(*(together_t *const *)context, output);
}

/* Bytes at the beginning of an arena that have all states. */
static uint64_t state_bytes(const kiln_descriptor_t *descriptor) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < descriptor->state_count; ++i) {
    const kiln_state_t *state = &descriptor->states[i];
    const uint64_t end = state->offset + state->tensor.copies * state->stride;
    bytes = end > bytes ? end : bytes;
  }
  return bytes;
}

/* What this rank lacks, of what others are told. */
static kiln_status_t check_own(const together_t *together, const kiln_call_t *call, kiln_error_t *error) {
  const kiln_contents_t *contents = together->contents;
  const char *function = together->function;
  const uint64_t bytes = contents->training ? state_bytes(contents->model->descriptor) : 0;
  if (!contents->model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s requires bound weights, got none", function);
  if (together->communicator->rank == 0 && !together->path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires a path on rank 0, got null", function);
  if (contents->training && !call->arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires an arena, got null", function);
  if (call->arena_bytes < bytes)
    return kiln_error_set(error, KILN_ARENA_TOO_SMALL, "%s requires an arena of %llu bytes, got " KILN_SIZE, function,
                          (unsigned long long)bytes, call->arena_bytes);
  return KILN_OK;
}

/* With what this rank has of the file; rank 0 says what became of that. */
static void write_together(together_t *together, const kiln_call_t *call) {
  const kiln_allocator_t *allocator = &together->contents->model->allocator;
  const bool is_first = together->communicator->rank == 0;
  void *memory = NULL;
  if (!check_own(together, call, &together->own) &&
      !kiln_memory_allocate(allocator, (uint64_t)PIECE_BYTES * (is_first ? 2 : 1), "room for pieces of tensors",
                            &memory, &together->own)) {
    together->part = memory;
    together->piece = is_first ? together->part + PIECE_BYTES : NULL;
    if (is_first)
      (void)kiln_file_replace(together->path, write_file, (const void *)&together, &together->own);
    else
      (void)write_contents(together, NULL);
  }
  if (!together->is_over)
    (void)agree(together);
  if (memory && !together->is_lost)
    allocator->release(allocator->self, memory);
}

static kiln_status_t save(const kiln_contents_t *contents, const kiln_call_t *call, const char *path,
                          const char *function) {
  together_t together = {.contents = contents, .communicator = call->communicator, .function = function, .path = path};
  const kiln_allocator_t *allocator = &contents->model->allocator;
  void *told;
  const kiln_status_t status =
      kiln_memory_allocate(allocator, sizeof *together.told, "room for words of ranks", &told, call->error);
  if (status)
    return status;
  together.told = told;
  write_together(&together, call);
  if (!together.is_lost)
    allocator->release(allocator->self, told);
  return together.own.status ? kiln_error_set(call->error, together.own.status, "%s", together.own.message)
                             : kiln_error_clear(call->error);
}

/* What no rank can be told of, since it may not be reached. */
static kiln_status_t check(const kiln_model_t *model, const kiln_call_t *call, const char *function) {
  if (!model || !call)
    return kiln_error_set(call ? call->error : NULL, KILN_NULL_ARGUMENT, "%s requires %s, got null", function,
                          model ? "a call" : "a model");
  if (!model->descriptor->sharding)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s requires a library for several ranks, got one for one", function);
  if (model->descriptor->stages > 1)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT, "%s requires a library for one stage, got one for %u",
                          function, model->descriptor->stages);
  return kiln_ranks_check(model, call, function);
}

kiln_status_t kiln_save_weights_together(const kiln_model_t *model, const kiln_call_t *call, const char *path) {
  const char *const function = "save_weights_together";
  const kiln_contents_t contents = {model, NULL, NULL};
  const kiln_status_t status = check(model, call, function);
  return status ? status : save(&contents, call, path, function);
}

kiln_status_t kiln_save_training_together(const kiln_model_t *model, const kiln_call_t *call,
                                          const kiln_training_t *training, const char *path) {
  const char *const function = "save_training_together";
  const kiln_status_t status = check(model, call, function);
  if (status)
    return status;
  if (!training)
    return kiln_error_set(call->error, KILN_NULL_ARGUMENT, "%s requires a step and a seed, got null", function);
  const kiln_contents_t contents = {model, call->arena, training};
  return save(&contents, call, path, function);
}
