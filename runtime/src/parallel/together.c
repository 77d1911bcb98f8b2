// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Ranks write one file from their slices, with the contents of a file of a single-process library:
 *
 *   1. Rank 0 creates the temporary file.
 *   2. For each tensor, one piece at a time, the ranks send their parts to rank 0, which writes the piece.
 *   3. After each piece all ranks exchange their status: if one has failed, all end with its status.
 *   4. Rank 0 renames the file, and reports the result.
 *
 * So no rank waits for one that has given up, or for longer than a piece takes. With optimiser-state sharding all
 * replicas take part: replica 0 of each rank gathers the rank's part of a state from the others, then continues as
 * above. With pipeline parallelism the ranks of the first stage that has a copy of a tensor do so, and rank 0 of
 * that stage sends the piece to rank 0 of stage 0, which writes it. */
#include "core/instance.h"
#include "parallel/processes.h"
#include "weights/pack.h"

#include <string.h>

/* PIECE: of a whole tensor. KEPT: the data are flushed to disk in such amounts, so that the end of the file takes no
 * longer. */
enum { PIECE_BYTES = 1 << 22, KEPT_BYTES = 1 << 26 };

/* The exchanged status: whether a rank has failed, then its error. */
enum { TOLD_NUMBERS = sizeof(kiln_error_t) / sizeof(int32_t) };
typedef union told_t {
  int32_t numbers[TOLD_NUMBERS];
  kiln_error_t error;
} told_t;

/* The state of a rank's call. Buffers of a communicator are separately allocated, and stay allocated if it fails,
 * since it may still write to them. */
typedef struct together_t {
  const kiln_contents_t *contents;
  const kiln_communicator_t *groups[KILN_GROUPS]; /* null: a single process */
  const char *function, *path;
  const kiln_output_t *output; /* in the process that writes, while there is a file */
  uint64_t unkept;             /* bytes that are not flushed yet */
  char *piece;                 /* in a stage's first process: a piece of a whole tensor */
  char *part;                  /* one rank's elements of the piece, contiguous */
  told_t *told;
  kiln_error_t own; /* the own error; at the end that of all */
  bool is_over;     /* all processes know of a failure */
  bool is_lost;     /* no process can be reached */
} together_t;

static const char *const members[KILN_GROUPS] = {"rank", "replica", "stage"};

static uint32_t size_of(const together_t *together, uint32_t group) {
  return together->groups[group] ? together->groups[group]->size : 1;
}
static uint32_t number_of(const together_t *together, uint32_t group) {
  return together->groups[group] ? together->groups[group]->rank : 0;
}
static bool is_first_of_stage(const together_t *together) {
  return number_of(together, KILN_GROUP_RANKS) == 0 && number_of(together, KILN_GROUP_REPLICAS) == 0;
}
static bool is_first(const together_t *together) {
  return is_first_of_stage(together) && number_of(together, KILN_GROUP_STAGES) == 0;
}

/* Processes are numbered by ranks, then replicas, then stages. */
static uint32_t own_process(const together_t *together) {
  uint32_t process = 0;
  for (uint32_t group = KILN_GROUPS; group-- > 0;)
    process = process * size_of(together, group) + number_of(together, group);
  return process;
}

/* "rank 1 of 4", "replica 0 of 2", "stage 1 of 2", or several of them. */
typedef struct member_t {
  char text[120];
} member_t;
static member_t member_of(const together_t *together, uint32_t process) {
  member_t member = {""};
  for (uint32_t group = 0, size; group < KILN_GROUPS; process /= size, ++group) {
    const size_t length = strlen(member.text);
    size = size_of(together, group);
    if (together->groups[group])
      kiln_text_print(member.text + length, sizeof member.text - length, "%s%s %u of %u", length ? ", " : "",
                      members[group], process % size, size);
  }
  return member;
}

/* The communicator failed, so that the other processes cannot be notified. */
static kiln_status_t lose(together_t *together, kiln_status_t status, const char *words) {
  const member_t own = member_of(together, own_process(together));
  together->is_over = together->is_lost = true;
  return kiln_error_set(&together->own, status, "%s on %s cannot finish: %s", together->function, own.text,
                        words[0] ? words : "no words from the communicator");
}

/* All-reduces the numbers over the ranks, then the replicas and the stages, in place. */
static kiln_status_t add_up(together_t *together, uint64_t count) {
  int32_t *numbers = together->told->numbers;
  const kiln_collective_t collective = {
      .kind = KILN_ALL_REDUCE, .element = KILN_I32, .from = numbers, .to = numbers, .elements = count};
  for (uint32_t group = 0; group < KILN_GROUPS; ++group) {
    const kiln_communicator_t *communicator = together->groups[group];
    kiln_error_t words = {KILN_OK, ""};
    const kiln_status_t status = communicator ? kiln_ranks_do(communicator, &collective, &words) : KILN_OK;
    if (status)
      return lose(together, status, words.message);
  }
  return KILN_OK;
}

/* Broadcasts the error of a process: if it has one, it becomes that of all. */
static kiln_status_t ask(together_t *together, uint32_t process) {
  told_t *told = together->told;
  const member_t asked = member_of(together, process);
  memset(told, 0, sizeof *told);
  if (process == own_process(together))
    told->error = together->own;
  const kiln_status_t status = add_up(together, TOLD_NUMBERS);
  if (status || told->error.status == KILN_OK)
    return status;
  together->is_over = true;
  return kiln_error_set(&together->own, told->error.status, "%s failed on %s: %s", together->function, asked.text,
                        told->error.message);
}

/* Counts the failed processes first, then queries each process for its error until one has one. */
static kiln_status_t agree(together_t *together) {
  told_t *told = together->told;
  uint32_t processes = 1;
  told->numbers[0] = together->own.status != KILN_OK;
  kiln_status_t status = add_up(together, 1);
  if (status || told->numbers[0] == 0)
    return status;
  for (uint32_t group = 0; group < KILN_GROUPS; ++group)
    processes *= size_of(together, group);
  for (uint32_t process = 0; !together->is_over && process < processes; ++process)
    status = ask(together, process);
  return status;
}

/* The context of a reader of own elements. */
typedef struct kept_t {
  together_t *together;
  uint32_t index, copy;
  const kiln_shard_t *shard;
} kept_t;

/* Sends elements from process `number` of a group to the first one: sends them there, or receives them here. */
static kiln_status_t move(together_t *together, uint32_t group, uint32_t number, uint32_t element, uint64_t count,
                          char *values) {
  const bool is_sent = number_of(together, group) == number;
  const kiln_collective_t collective = {.kind = is_sent ? KILN_SEND : KILN_RECEIVE,
                                        .element = element,
                                        .from = is_sent ? values : NULL,
                                        .to = is_sent ? NULL : values,
                                        .elements = count,
                                        .peer = is_sent ? 0 : number};
  kiln_error_t words = {KILN_OK, ""};
  const kiln_status_t status = kiln_ranks_do(together->groups[group], &collective, &words);
  return status ? lose(together, status, words.message) : KILN_OK;
}

/* Gathers elements of a slice, of which each replica has a part, in replica 0. */
static kiln_status_t read_parts(const kept_t *kept, uint64_t first, uint64_t count, char *values, kiln_error_t *error) {
  together_t *together = kept->together;
  const kiln_weight_t *slice = kiln_kept_tensor(together->contents->model->descriptor, kept->index);
  const uint64_t bytes = kiln_safetensors_stored_bytes(slice->dtype, 1);
  const kiln_span_t all = {first, first, count};
  const uint32_t own = number_of(together, KILN_GROUP_REPLICAS);
  const uint32_t last = own == 0 ? size_of(together, KILN_GROUP_REPLICAS) : own + 1;
  kiln_status_t status = KILN_OK;
  for (uint32_t replica = own; replica < last; ++replica) {
    kiln_span_t part;
    if (together->is_lost ||
        !kiln_span_part(&all, kiln_elements_except(slice, slice->rank), kept->shard, replica, &part))
      continue;
    char *place = values + (part.whole - first) * bytes;
    if (replica == own)
      status = kiln_contents_read(together->contents, kept->index, kept->copy, part.own, part.count, place, error);
    if (replica > 0)
      (void)move(together, KILN_GROUP_REPLICAS, replica, slice->dtype, part.count, place);
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

/* Gathers the elements between two elements of a tensor in the piece of the stage's first process, if this process
 * has some of them. */
static kiln_status_t gather_piece(const kept_t *kept, const kiln_weight_t *tensor, uint64_t begin, uint64_t end) {
  together_t *together = kept->together;
  const uint32_t replica = number_of(together, KILN_GROUP_REPLICAS);
  const kiln_slices_t slices = {together->groups[KILN_GROUP_RANKS], tensor, kept->shard, read_kept, kept, replica > 0};
  kiln_error_t words = {KILN_OK, ""};
  kiln_status_t status = KILN_OK;
  if (replica > 0 && kept->shard->parts <= 1)
    return KILN_OK;
  if (kept->shard->section_count > 0)
    status = kiln_slices_gather(&slices, begin, end, together->piece, together->part, &together->own, &words);
  else if (number_of(together, KILN_GROUP_RANKS) == 0)
    (void)read_kept(kept, begin, end - begin, replica == 0 ? together->piece : together->part, &together->own);
  if (status && !together->is_lost)
    return lose(together, status, words.message);
  return together->is_lost ? together->own.status : KILN_OK;
}

/* Returns the first stage that has a copy of a tensor. Stages between the first and the last have only layers, and
 * tensors that the first or the last one also has. */
static uint32_t stage_of(const kiln_descriptor_t *descriptor, const kiln_weight_t *tensor, uint32_t copy) {
  uint32_t stage = 0;
  if (tensor->flags & KILN_WEIGHT_OF_STAGE) {
    while (stage + 1 < descriptor->stages && copy >= kiln_first_copy(descriptor, tensor, stage + 1))
      ++stage;
    return stage;
  }
  return tensor->flags & KILN_WEIGHT_ABSENT << KILN_STAGE_ROLE_FIRST ? descriptor->stages - 1 : 0;
}

/* Gathers a piece by gather_piece, and sends it to the process that writes. */
static kiln_status_t bring_piece(const kept_t *kept, uint32_t stage, const kiln_weight_t *tensor, uint64_t begin,
                                 uint64_t end) {
  together_t *together = kept->together;
  const uint32_t own = number_of(together, KILN_GROUP_STAGES);
  const kiln_status_t status = own == stage ? gather_piece(kept, tensor, begin, end) : KILN_OK;
  const bool is_moved = stage > 0 && (own == 0 || own == stage) && is_first_of_stage(together);
  return status || !is_moved ? status
                             : move(together, KILN_GROUP_STAGES, stage, tensor->dtype, end - begin, together->piece);
}

/* Writes a copy of a tensor, one piece at a time. */
static kiln_status_t write_copy(together_t *together, uint32_t index, uint32_t copy) {
  const kiln_descriptor_t *descriptor = together->contents->model->descriptor;
  const kiln_weight_t *tensor = kiln_kept_tensor(descriptor, index);
  const uint32_t stage = stage_of(descriptor, tensor, copy);
  const kept_t kept = {together, index, copy - kiln_first_copy(descriptor, tensor, stage), &descriptor->shards[index]};
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, 1), step = PIECE_BYTES / bytes;
  const uint64_t all = kept.shard->section_count > 0 ? kiln_whole_elements(tensor, kept.shard)
                                                     : kiln_elements_except(tensor, tensor->rank);
  kiln_status_t status = KILN_OK;
  for (uint64_t begin = 0, end; !status && begin < all; begin = end) {
    end = all - begin < step ? all : begin + step;
    if ((status = bring_piece(&kept, stage, tensor, begin, end)))
      return status;
    write_piece(together, (end - begin) * bytes);
    status = agree(together);
  }
  return status;
}

/* Writes the file in the first process; with a null output, sends the contents to it. */
static kiln_status_t write_contents(together_t *together, const kiln_output_t *output) {
  const kiln_contents_t *contents = together->contents;
  const kiln_model_t *model = contents->model;
  const kiln_descriptor_t *descriptor = model->descriptor;
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
  (void)error; /* it is together->own */
  return write_contents(*(together_t *const *)context, output);
}

/* Returns the number of bytes at the beginning of an arena that contain all states of the model. */
static uint64_t state_bytes(const kiln_model_t *model) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < model->descriptor->state_count; ++i) {
    const kiln_state_t *state = &model->descriptor->states[i];
    uint32_t first;
    const uint32_t copies = kiln_own_copies(model, &state->tensor, &first);
    const uint64_t end = copies ? kiln_state_place(model, state, copies) : 0;
    bytes = end > bytes ? end : bytes;
  }
  return bytes;
}

/* Formats "rank 0 of replica 0" for the groups that exist. */
static member_t first_member(const together_t *together) {
  member_t member = {""};
  for (uint32_t group = 0; group < KILN_GROUPS; ++group) {
    const size_t length = strlen(member.text);
    if (together->groups[group])
      kiln_text_print(member.text + length, sizeof member.text - length, "%s%s 0", length ? " of " : "",
                      members[group]);
  }
  return member;
}

/* Checks the requirements of this rank, whose failure the other ranks are notified of. */
static kiln_status_t check_own(const together_t *together, const kiln_call_t *call, kiln_error_t *error) {
  const kiln_contents_t *contents = together->contents;
  const char *function = together->function;
  const uint64_t bytes = contents->training ? state_bytes(contents->model) : 0;
  if (!contents->model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "%s: no weights; expected bound ones", function);
  if (is_first(together) && !together->path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected a path on %s", function,
                          first_member(together).text);
  if (contents->training && !call->arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected an arena", function);
  if (call->arena_bytes < bytes)
    return kiln_error_set(error, KILN_ARENA_TOO_SMALL, "%s: arena too small; expected %llu bytes, got " KILN_SIZE,
                          function, (unsigned long long)bytes, call->arena_bytes);
  return KILN_OK;
}

/* Writes the file with all processes; the first one reports the result. */
static void write_together(together_t *together, const kiln_call_t *call) {
  const kiln_allocator_t *allocator = &together->contents->model->allocator;
  const bool has_piece = is_first_of_stage(together);
  void *memory = NULL;
  if (!check_own(together, call, &together->own) &&
      !kiln_memory_allocate(allocator, (uint64_t)PIECE_BYTES * (has_piece ? 2 : 1), "room for pieces of tensors",
                            &memory, &together->own)) {
    together->part = memory;
    together->piece = has_piece ? together->part + PIECE_BYTES : NULL;
    if (is_first(together))
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
                         .groups = {descriptor->ranks > 1 ? call->communicator : NULL,
                                    contents->training && kiln_shared_state(descriptor) ? call->replicas : NULL,
                                    descriptor->stages > 1 ? call->stages : NULL},
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

/* Checks requirements whose failure the other ranks cannot be notified of, since they may be unreachable. */
static kiln_status_t check(const kiln_model_t *model, const kiln_call_t *call, const char *function) {
  if (!model || !call)
    return kiln_error_set(call ? call->error : NULL, KILN_NULL_ARGUMENT, "%s: null given; expected %s", function,
                          model ? "a call" : "a model");
  if (!model->descriptor->sharding)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT, "%s: library for one rank; expected one for several",
                          function);
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
    return kiln_error_set(call->error, KILN_NULL_ARGUMENT, "%s: null given; expected a step and a seed", function);
  const kiln_contents_t contents = {model, call->arena, training};
  return save(&contents, call, path, function);
}
