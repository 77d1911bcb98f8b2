// SPDX-License-Identifier: Apache-2.0
/* Models of several ranks: which of them a model is, its communicator, and its slices of the weights. Only a descriptor
 * for several ranks refers to this file, so that no other program links it. */
#include "internal.h"

#include <string.h>

/* Pages of a mapped file are given back so many bytes at a time. */
enum { READ_BYTES = 1 << 20 };

/* The number of the model's part, of shard->parts. */
static uint64_t part_of(const kiln_model_t *model, const kiln_shard_t *shard) {
  return (uint64_t)(model->rank / shard->group) * shard->stride + shard->first;
}

/* That the rank has a part of each tensor, on a CPU: otherwise the compiler made a mistake. */
static kiln_status_t check_parts(const kiln_model_t *model, kiln_error_t *error) {
  for (uint32_t i = 0; i < model->descriptor->variant_count; ++i)
    if (model->descriptor->variants[i].backend)
      return kiln_error_set(error, KILN_INTERNAL_ERROR, "model \"%.*s\" of several ranks requires CPUs, got a GPU",
                            KILN_NAME_SHOWN, model->descriptor->name);
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i) {
    const kiln_weight_t *weight = &model->descriptor->weights[i];
    const kiln_shard_t *shard = &model->descriptor->shards[i];
    if (shard->parts > 1 && (shard->dim >= weight->rank || shard->group == 0 || part_of(model, shard) >= shard->parts))
      return kiln_error_set(error, KILN_INTERNAL_ERROR, "weight \"%.*s\" requires one of %u parts for rank %u",
                            KILN_NAME_SHOWN, weight->name, shard->parts, model->rank);
  }
  return KILN_OK;
}

static kiln_status_t create(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  if (descriptor->ranks <= 1 && options->ranks <= 1 && options->rank == 0)
    return check_parts(model, error);
  if (options->ranks == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "model \"%.*s\" requires create_on with a rank and %u ranks, got none", KILN_NAME_SHOWN,
                          descriptor->name, descriptor->ranks);
  if (options->ranks != descriptor->ranks)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "model \"%.*s\" requires %u ranks, got %u", KILN_NAME_SHOWN,
                          descriptor->name, descriptor->ranks, options->ranks);
  if (options->rank >= options->ranks)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "model \"%.*s\" requires a rank below %u, got %u",
                          KILN_NAME_SHOWN, descriptor->name, descriptor->ranks, options->rank);
  model->rank = options->rank;
  return check_parts(model, error);
}

/* Takes a group's communicator, of `size` processes. */
static kiln_status_t join(kiln_together_t *together, uint32_t number, const kiln_communicator_t *communicator,
                          uint32_t size, kiln_error_t *error) {
  static const char *const members[] = {"rank", "replica"};
  kiln_group_t *group = &together->groups[number];
  const bool isNeeded = size > 1 && number == KILN_GROUP_RANKS; /* of replicas an entry that trains says it */
  if (communicator ? !communicator->begin || !communicator->finish : isNeeded)
    return kiln_error_set(error, KILN_NULL_ARGUMENT,
                          "%s requires a communicator of %ss with begin and finish, got null", together->entry,
                          members[number]);
  if (size <= 1 && communicator)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s requires a null communicator of %ss, got another",
                          together->entry, members[number]);
  if (communicator && (communicator->size != size || communicator->rank >= size))
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s requires a communicator of %u %ss, got %s %u of %u",
                          together->entry, size, members[number], members[number], communicator->rank,
                          communicator->size);
  *group = (kiln_group_t){.communicator = communicator, .member = members[number]};
  together->number[number] = communicator ? (int32_t)communicator->rank : 0;
  return KILN_OK;
}

/* The call's communicators, which must be the model's. */
static kiln_status_t join_all(kiln_together_t *together, const kiln_model_t *model, const kiln_call_t *call) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  kiln_status_t status = join(together, KILN_GROUP_RANKS, call->communicator, descriptor->ranks, call->error);
  if (!status)
    status = join(together, KILN_GROUP_REPLICAS, call->replicas, descriptor->replicas, call->error);
  if (!status && together->number[KILN_GROUP_RANKS] != (int32_t)model->rank)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s requires a communicator of rank %u of %u, as its model is, got rank %d", together->entry,
                          model->rank, descriptor->ranks, together->number[KILN_GROUP_RANKS]);
  return status;
}

static kiln_status_t run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                         const kiln_frame_t *frame) {
  kiln_together_t together = {.entry = model->descriptor->entries[entry].name, .failed = {KILN_OK, ""}};
  kiln_frame_t own = *frame;
  kiln_status_t status = join_all(&together, model, call);
  if (status)
    return status;
  own.together = &together;
  status = kiln_body_run(model, entry, &own, call->error);
  /* What a body that failed had begun. */
  for (uint32_t group = 0; group < KILN_GROUPS; ++group)
    (void)kiln_finish_collectives(&own, group);
  /* The body returned it, and knows no words. */
  return together.failed.status ? kiln_error_set(call->error, together.failed.status, "%s", together.failed.message)
                                : status;
}

static const kiln_weight_t *whole(const kiln_descriptor_t *descriptor, uint32_t index, kiln_weight_t *room) {
  const kiln_weight_t *weight = &descriptor->weights[index];
  const kiln_shard_t *shard = &descriptor->shards[index];
  if (shard->parts <= 1)
    return weight;
  *room = *weight;
  room->shape[shard->dim] *= shard->parts;
  return room;
}

/* Elements of a tensor: `run` from `first` on, and as many each `pitch` elements. */
typedef struct slice_t {
  const kiln_tensor_t *tensor;
  uint64_t first, run, pitch;
  uint64_t row, column; /* of a matrix, where it begins; column: of what is no matrix, as if it were one */
} slice_t;

static slice_t slice_of(const kiln_weight_t *weight, const kiln_shard_t *shard, uint64_t part,
                        const kiln_tensor_t *tensor) {
  const uint64_t begin = part * (uint64_t)weight->shape[shard->dim];
  uint64_t inner = 1;
  for (uint32_t i = shard->dim + 1; i < weight->rank; ++i)
    inner *= (uint64_t)weight->shape[i];
  const uint64_t run = (uint64_t)weight->shape[shard->dim] * inner;
  return (slice_t){
      tensor, begin * inner, run, run * shard->parts, shard->dim ? 0 : begin, shard->dim ? begin * inner : 0};
}

/* Numbers of a tensor that has a form. */
static void read_slice(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const slice_t *slice = tensor->parts;
  for (size_t step; count > 0; first += step, to += step, count -= step) {
    const uint64_t within = first % slice->run, left = slice->run - within;
    step = count < left ? count : (size_t)left;
    kiln_convert_read(slice->tensor, to, slice->first + first / slice->run * slice->pitch + within, step);
  }
}

/* Groups stay as they are where the slice begins between two. */
static bool has_groups(const kiln_tensor_t *tensor, uint32_t group, bool is_centred) {
  const slice_t *slice = tensor->parts;
  const kiln_form_t *form = slice->tensor->form;
  return tensor->rank == 2 && slice->column % group == 0 && form->has_groups &&
         form->has_groups(slice->tensor, group, is_centred);
}

static void read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, uint32_t *words, char *scales,
                        signed char *zeros) {
  const slice_t *slice = tensor->parts;
  kiln_part_t moved = *part;
  moved.row += (size_t)slice->row;
  moved.first += (size_t)slice->column;
  slice->tensor->form->read_groups(slice->tensor, &moved, words, scales, zeros);
}

static const kiln_form_t slice_form = {read_slice, has_groups, read_groups};

/* The slice's elements side by side, as the file has them; pages of the file are given back. */
static void gather(const slice_t *slice, char *to, uint64_t elements) {
  const kiln_tensor_t *tensor = slice->tensor;
  const size_t run = (size_t)kiln_safetensors_stored_bytes(tensor->dtype, slice->run);
  const size_t pitch = (size_t)kiln_safetensors_stored_bytes(tensor->dtype, slice->pitch);
  const char *from = tensor->data + kiln_safetensors_stored_bytes(tensor->dtype, slice->first), *kept = from;
  for (uint64_t done = 0; done < elements; done += slice->run, to += run, from += pitch) {
    memcpy(to, from, run);
    if (tensor->source && (from - kept >= READ_BYTES || elements - done <= slice->run)) {
      kiln_file_give_back(tensor->source, kept, from + run);
      kept = from + run;
    }
  }
}

static kiln_status_t take(const kiln_model_t *model, const kiln_packing_t *packing, kiln_tensor_t *tensor,
                          kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const kiln_weight_t *weight = packing->weight;
  const kiln_shard_t *shard = &descriptor->shards[weight - descriptor->weights];
  kiln_packing_t part = *packing;
  kiln_weight_t room;
  part.weight = whole(descriptor, (uint32_t)(weight - descriptor->weights), &room);
  if (part.weight == weight || !packing->packed)
    return kiln_take_tensor(&part, tensor, error);
  const slice_t slice = slice_of(weight, shard, part_of(model, shard), tensor);
  const uint64_t elements = kiln_elements_beside(weight, weight->rank);
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, elements);
  kiln_tensor_t piece = *tensor;
  void *memory = NULL;
  kiln_status_t status;
  part.weight = weight;
  part.dim = shard->dim;
  part.first = (int64_t)part_of(model, shard) * weight->shape[shard->dim];
  memcpy(piece.shape, weight->shape, sizeof piece.shape);
  if (tensor->form) {
    piece.form = &slice_form;
    piece.parts = &slice;
  } else if (slice.run == elements) {
    piece.data += kiln_safetensors_stored_bytes(tensor->dtype, slice.first);
    piece.end = piece.begin + bytes; /* as far as the data go, which is all that is asked of these */
  } else {
    if ((status = kiln_memory_allocate(&model->allocator, bytes, "a slice of a weight", &memory, error)))
      return status;
    gather(&slice, memory, elements);
    piece.data = memory;
    piece.source = NULL;
  }
  status = kiln_take_tensor(&part, &piece, error);
  if (memory)
    model->allocator.release(model->allocator.self, memory);
  return status;
}

static void name(const kiln_model_t *model, char *text, size_t room) {
  const size_t length = strlen(text);
  if (model->descriptor->ranks > 1)
    kiln_text_print(text + length, room - length, " (rank %u of %u)", model->rank, model->descriptor->ranks);
}

static bool has_parts(const kiln_descriptor_t *descriptor, uint32_t index) {
  const kiln_weight_t *one = &descriptor->weights[index];
  for (uint32_t i = 0; i < descriptor->weight_count; ++i) {
    const kiln_weight_t *other = &descriptor->weights[i];
    if (strcmp(one->name, other->name) == 0 &&
        (memcmp(one->shape, other->shape, sizeof one->shape) != 0 ||
         memcmp(&descriptor->shards[index], &descriptor->shards[i], sizeof *descriptor->shards) != 0))
      return true;
  }
  return false;
}

static kiln_status_t refuse_slices(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i)
    if (model->descriptor->shards[i].parts > 1)
      return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s requires whole weights, got a slice of \"%.*s\"",
                            function, KILN_NAME_SHOWN, model->descriptor->weights[i].name);
  return KILN_OK;
}

const kiln_sharding_t kiln_sharding = {create, run, whole, take, name, has_parts, refuse_slices};
