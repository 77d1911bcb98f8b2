// SPDX-License-Identifier: Apache-2.0
/* Ranks write one file of what they have slices of, which is that of a library for one process:
 *
 *   1. Rank 0 begins the file, beside the one that it takes the place of.
 *   2. Of each tensor, a piece at a time, the ranks send their parts to rank 0, which writes the piece.
 *   3. Behind each piece all ranks tell each other how they are: where one has failed all end, with its status.
 *   4. Rank 0 gives the file its name, and says so.
 *
 * So no rank waits for one that has given up, or for longer than a piece takes. Where replicas share out states, all of
 * them take part: of a state replica 0 of each rank gets the rank's part from the others, and goes on as above. */
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
  const kiln_communicator_t *ranks, *replicas; /* null: there is one */
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

static uint32_t size_of(const kiln_communicator_t *communicator) { return communicator ? communicator->size : 1; }
static uint32_t number_of(const kiln_communicator_t *communicator) { return communicator ? communicator->rank : 0; }
static bool is_first(const together_t *together) {
  return number_of(together->ranks) == 0 && number_of(together->replicas) == 0;
}

/* "rank 1 of 4", "replica 0 of 2", or both. */
typedef struct member_t {
  char text[80];
} member_t;
static member_t member_of(const together_t *together, uint32_t rank, uint32_t replica) {
  member_t member = {""};
  size_t length = 0;
  if (together->ranks)
    length = kiln_text_print(member.text, sizeof member.text, "rank %u of %u", rank, together->ranks->size);
  if (together->replicas)
    kiln_text_print(member.text + length, sizeof member.text - length, "%sreplica %u of %u", length ? ", " : "",
                    replica, together->replicas->size);
  return member;
}

/* The communicator failed, so that nobody can be told. */
static kiln_status_t lose(together_t *together, kiln_status_t status, const char *words) {
  const member_t own = member_of(together, number_of(together->ranks), number_of(together->replicas));
  together->is_over = together->is_lost = true;
  return kiln_error_set(&together->own, status, "%s on %s cannot finish: %s", together->function, own.text,
                        words[0] ? words : "no words from the communicator");
}

/* The sum over all ranks, and then over the replicas, takes the place of what is told. */
static kiln_status_t add_up(together_t *together, uint64_t count) {
  const kiln_communicator_t *const groups[] = {together->ranks, together->replicas};
  int32_t *numbers = together->told->numbers;
  const kiln_collective_t collective = {
      .kind = KILN_ALL_REDUCE, .element = KILN_I32, .from = numbers, .to = numbers, .elements = count};
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i) {
    kiln_error_t words = {KILN_OK, ""};
    const kiln_status_t status = groups[i] ? kiln_ranks_do(groups[i], &collective, &words) : KILN_OK;
    if (status)
      return lose(together, status, words.message);
  }
  return KILN_OK;
}

/* Asks a rank of a replica for its words: if it has some they become all ranks'. */
static kiln_status_t ask(together_t *together, uint32_t rank, uint32_t replica) {
  told_t *told = together->told;
  const member_t asked = member_of(together, rank, replica);
  memset(told, 0, sizeof *told);
  if (rank == number_of(together->ranks) && replica == number_of(together->replicas))
    told->error = together->own;
  const kiln_status_t status = add_up(together, TOLD_NUMBERS);
  if (status || told->error.status == KILN_OK)
    return status;
  together->is_over = true;
  return kiln_error_set(&together->own, told->error.status, "%s failed on %s: %s", together->function, asked.text,
                        told->error.message);
}

/* How many ranks have failed is asked first, then each of them for its words, until one has some. */
static kiln_status_t agree(together_t *together) {
  told_t *told = together->told;
  told->numbers[0] = together->own.status != KILN_OK;
  kiln_status_t status = add_up(together, 1);
  if (status || told->numbers[0] == 0)
    return status;
  for (uint32_t replica = 0; replica < size_of(together->replicas); ++replica)
    for (uint32_t rank = 0; !together->is_over && rank < size_of(together->ranks); ++rank)
      status = ask(together, rank, replica);
  return status;
}

/* What a reader of own elements has. */
typedef struct kept_t {
  together_t *together;
  uint32_t index, copy;
  const kiln_shard_t *shard;
} kept_t;

/* Elements of a replica's part go to replica 0: from there, or to their place here. */
static void move_part(const kept_t *kept, uint32_t replica, const kiln_span_t *part, uint32_t element, char *values) {
  together_t *together = kept->together;
  const bool is_sent = number_of(together->replicas) == replica;
  const kiln_collective_t collective = {.kind = is_sent ? KILN_SEND : KILN_RECEIVE,
                                        .element = element,
                                        .from = is_sent ? values : NULL,
                                        .to = is_sent ? NULL : values,
                                        .elements = part->count,
                                        .peer = is_sent ? 0 : replica};
  kiln_error_t words = {KILN_OK, ""};
  const kiln_status_t status = kiln_ranks_do(together->replicas, &collective, &words);
  if (status)
    (void)lose(together, status, words.message);
}

/* Elements of a slice of which each replica has a part come to replica 0. */
static kiln_status_t read_parts(const kept_t *kept, uint64_t first, uint64_t count, char *values, kiln_error_t *error) {
  together_t *together = kept->together;
  const kiln_weight_t *slice = kiln_kept_tensor(together->contents->model->descriptor, kept->index);
  const uint64_t bytes = kiln_safetensors_stored_bytes(slice->dtype, 1);
  const kiln_span_t all = {first, first, count};
  const uint32_t own = number_of(together->replicas);
  kiln_status_t status = KILN_OK;
  for (uint32_t replica = own; replica < (own == 0 ? together->replicas->size : own + 1); ++replica) {
    kiln_span_t part;
    if (together->is_lost ||
        !kiln_span_part(&all, kiln_elements_beside(slice, slice->rank), kept->shard, replica, &part))
      continue;
    char *place = values + (part.whole - first) * bytes;
    if (replica == own)
      status = kiln_contents_read(together->contents, kept->index, kept->copy, part.own, part.count, place, error);
    if (replica > 0)
      move_part(kept, replica, &part, slice->dtype, place);
  }
  return status;
}

static kiln_status_t read_kept(const void *context, uint64_t first, uint64_t count, void *values, kiln_error_t *error) {
  const kept_t *kept = context;
  return kept->shard->parts > 1
             ? read_parts(kept, first, count, values, error)
             : kiln_contents_read(kept->together->contents, kept->index, kept->copy, first, count, values, error);
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

/* What is between two elements of a tensor comes to the piece of rank 0, if this process has something of it. */
static kiln_status_t gather_piece(const kept_t *kept, const kiln_weight_t *tensor, uint64_t begin, uint64_t end) {
  together_t *together = kept->together;
  const uint32_t replica = number_of(together->replicas);
  const kiln_slices_t slices = {together->ranks, tensor, kept->shard, read_kept, kept, replica > 0};
  kiln_error_t words = {KILN_OK, ""};
  kiln_status_t status = KILN_OK;
  if (replica > 0 && kept->shard->parts <= 1)
    return KILN_OK;
  if (kept->shard->section_count > 0)
    status = kiln_slices_gather(&slices, begin, end, together->piece, together->part, &together->own, &words);
  else if (number_of(together->ranks) == 0)
    (void)read_kept(kept, begin, end - begin, replica == 0 ? together->piece : together->part, &together->own);
  if (status && !together->is_lost)
    return lose(together, status, words.message);
  return together->is_lost ? together->own.status : KILN_OK;
}

/* A tensor that is split or, of rank 0, whole. */
static kiln_status_t write_copy(together_t *together, uint32_t index, uint32_t copy) {
  const kiln_descriptor_t *descriptor = together->contents->model->descriptor;
  const kept_t kept = {together, index, copy, &descriptor->shards[index]};
  const kiln_weight_t *tensor = kiln_kept_tensor(descriptor, index);
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, 1), step = PIECE_BYTES / bytes;
  const uint64_t all = kept.shard->section_count > 0 ? kiln_whole_elements(tensor, kept.shard)
                                                     : kiln_elements_beside(tensor, tensor->rank);
  kiln_status_t status = KILN_OK;
  for (uint64_t begin = 0, end; !status && begin < all; begin = end) {
    end = all - begin < step ? all : begin + step;
    if ((status = gather_piece(&kept, tensor, begin, end)))
      return status;
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
  if (is_first(together) && !together->path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires a path on %s, got null", function,
                          !together->replicas ? "rank 0"
                          : together->ranks   ? "rank 0 of replica 0"
                                              : "replica 0");
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
  const bool is_writer = is_first(together);
  void *memory = NULL;
  if (!check_own(together, call, &together->own) &&
      !kiln_memory_allocate(allocator, (uint64_t)PIECE_BYTES * (is_writer ? 2 : 1), "room for pieces of tensors",
                            &memory, &together->own)) {
    together->part = memory;
    together->piece = is_writer ? together->part + PIECE_BYTES : NULL;
    if (is_writer)
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
  const kiln_descriptor_t *descriptor = contents->model->descriptor;
  together_t together = {.contents = contents,
                         .ranks = descriptor->ranks > 1 ? call->communicator : NULL,
                         .replicas = contents->training && kiln_shared_state(descriptor) ? call->replicas : NULL,
                         .function = function,
                         .path = path};
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
  kiln_status_t status = check(model, call, function);
  if (status || (status = kiln_replicas_check(model, call, function)))
    return status;
  if (!training)
    return kiln_error_set(call->error, KILN_NULL_ARGUMENT, "%s requires a step and a seed, got null", function);
  const kiln_contents_t contents = {model, call->arena, training};
  return save(&contents, call, path, function);
}
