// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Parallel models: the rank, stage and replica of a model, its communicators, and its slices of the weights. Only
 * the descriptor of a parallel library refers to this file, so that no other program links it. */
#include "core/instance.h"
#include "core/run.h"
#include "parallel/processes.h"
#include "weights/bind.h"
#include "weights/convert.h"
#include "weights/pack.h"

#include <string.h>

/* Pages of a mapped file are released in chunks of this size. */
enum { READ_BYTES = 1 << 20 };

/* Whether the slices of all ranks cover the whole tensor. */
static bool is_possible(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t ranks) {
  uint64_t own = 0, all = 0;
  if (shard->section_count > 0 && shard->dim >= slice->rank)
    return false;
  for (uint32_t i = 0; i < shard->section_count; ++i) {
    const kiln_section_t *section = &shard->sections[i];
    if (section->group == 0 || ranks % section->group != 0)
      return false;
    const uint64_t last = kiln_section_owned(section, ranks - 1);
    if (last >= shard->extent || section->extent > shard->extent)
      return false;
    const uint64_t left = shard->extent - last; /* remainder for the last rank, whose section still has the full size */
    own += section->extent;
    all += section->extent * (ranks / section->group - 1) + (left < section->extent ? left : section->extent);
  }
  return shard->section_count == 0 || (own == (uint64_t)slice->shape[shard->dim] && all == shard->extent);
}

/* Checks that the slices of each tensor are valid; otherwise the compiler has a bug. */
static kiln_status_t check_parts(const kiln_model_t *model, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  for (uint32_t i = 0; i < descriptor->weight_count + descriptor->state_count; ++i) {
    const kiln_weight_t *slice = kiln_kept_tensor(descriptor, i);
    if (!is_possible(slice, &descriptor->shards[i], descriptor->ranks))
      return kiln_error_set(error, KILN_INTERNAL_ERROR,
                            "tensor \"%.*s\": wrong sections; expected all of it for %u ranks", KILN_NAME_SHOWN,
                            slice->name, descriptor->ranks);
    const uint32_t parts = descriptor->shards[i].parts;
    if (parts > 1 && (parts != descriptor->replicas || kiln_elements_except(slice, slice->rank) % parts != 0))
      return kiln_error_set(error, KILN_INTERNAL_ERROR,
                            "tensor \"%.*s\": unequal parts; expected one for each of %u replicas", KILN_NAME_SHOWN,
                            slice->name, descriptor->replicas);
  }
  return KILN_OK;
}

/* Sets *number to the rank or stage (named by `member`) in the options; the library has `wanted` of them. */
static kiln_status_t take_number(const kiln_model_t *model, const char *member, uint32_t wanted, uint32_t given,
                                 uint32_t count, uint32_t *number, kiln_error_t *error) {
  const char *const name = model->descriptor->name;
  if (wanted <= 1 && count <= 1 && given == 0)
    return KILN_OK;
  if (count == 0)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "model \"%.*s\": no %s given; expected create_on with one and %u %ss", KILN_NAME_SHOWN, name,
                          member, wanted, member);
  if (count != wanted)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "model \"%.*s\": wrong group size; expected %u %ss, got %u",
                          KILN_NAME_SHOWN, name, wanted, member, count);
  if (given >= count)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "model \"%.*s\": %s too large; expected below %u, got %u",
                          KILN_NAME_SHOWN, name, member, count, given);
  *number = given;
  return KILN_OK;
}

/* Sets the model's replica, with optimiser-state sharding. */
static kiln_status_t take_replica(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  if (!kiln_shared_state(descriptor))
    return KILN_OK;
  if (options->replicas != descriptor->replicas || options->replica >= options->replicas)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "model \"%.*s\": wrong replica; expected one below %u and %u replicas, got %u and %u",
                          KILN_NAME_SHOWN, descriptor->name, descriptor->replicas, descriptor->replicas,
                          options->replica, options->replicas);
  model->replica = options->replica;
  return KILN_OK;
}

static kiln_status_t create(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  kiln_status_t status =
      take_number(model, "rank", descriptor->ranks, options->rank, options->ranks, &model->rank, error);
  if (!status)
    status = take_number(model, "stage", descriptor->stages, options->stage, options->stages, &model->stage, error);
  if (!status)
    status = take_replica(model, options, error);
  return status ? status : check_parts(model, error);
}

static void take_stage_role(kiln_model_t *model) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const kiln_variant_t *variant = model->variant;
  if (descriptor->stages <= 1)
    return;
  const uint32_t role = descriptor->roles[model->stage];
  model->role = (kiln_stage_role_t){.number = role,
                                    .bodies = &variant->bodies[role * descriptor->entry_count],
                                    .placements = &variant->placements[role * descriptor->weight_count],
                                    .packed_bytes = variant->stage_role_bytes[role],
                                    .is_silent = role != KILN_STAGE_ROLE_LAST};
}

static uint32_t copies(const kiln_model_t *model, const kiln_weight_t *weight, uint32_t *first) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const uint32_t role = model->role.number;
  if (weight->flags & (uint32_t)KILN_WEIGHT_ABSENT << (role < KILN_STAGE_ROLE_MIDDLE ? role : KILN_STAGE_ROLE_MIDDLE))
    return 0;
  *first = kiln_first_copy(descriptor, weight, model->stage);
  return weight->flags & KILN_WEIGHT_OF_STAGE ? kiln_stage_layers(weight->copies, descriptor->stages, model->stage)
                                              : weight->copies;
}

/* Sets a group's communicator, which must have `size` processes. */
static kiln_status_t join(kiln_together_t *together, uint32_t number, const kiln_communicator_t *communicator,
                          uint32_t size, kiln_error_t *error) {
  static const char *const members[] = {"rank", "replica", "stage"};
  kiln_group_t *group = &together->groups[number];
  const bool isNeeded = size > 1 && number != KILN_GROUP_REPLICAS; /* training entries check the replicas */
  if (communicator ? !communicator->begin || !communicator->finish : isNeeded)
    return kiln_error_set(error, KILN_NULL_ARGUMENT,
                          "%s: null given; expected a communicator of %ss with begin and finish", together->entry,
                          members[number]);
  if (size <= 1 && communicator)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s: communicator set; expected a null one of %ss",
                          together->entry, members[number]);
  if (communicator && (communicator->size != size || communicator->rank >= size))
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "%s: wrong communicator; expected one of %u %ss, got %s %u of %u", together->entry, size,
                          members[number], members[number], communicator->rank, communicator->size);
  *group = (kiln_group_t){.communicator = communicator, .member = members[number]};
  together->number[number] = communicator ? (int32_t)communicator->rank : 0;
  return KILN_OK;
}

/* On a GPU a lost rank prevents the stream from completing, so a call must not wait for the stream. */
static kiln_status_t check_waits(const kiln_model_t *model, const kiln_call_t *call, const char *entry) {
  if (!model->variant->backend)
    return KILN_OK;
  if (call->memory != KILN_DEVICE_POINTERS)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s of several ranks on GPUs: wrong memory; expected %d, device pointers, got %llu", entry,
                          KILN_DEVICE_POINTERS, (unsigned long long)call->memory);
  if (call->trace)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT, "%s of several ranks on GPUs: trace set; expected null",
                          entry);
  return KILN_OK;
}

/* Sets the communicator of a group, in which the model must be process `number`. */
static kiln_status_t join_own(kiln_together_t *together, uint32_t group, const kiln_communicator_t *communicator,
                              uint32_t number, uint32_t size, kiln_error_t *error) {
  const kiln_status_t status = join(together, group, communicator, size, error);
  const char *const member = together->groups[group].member;
  if (!status && together->number[group] != (int32_t)number)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "%s: wrong communicator; expected %s %u of %u, as its model, got %s %d", together->entry,
                          member, number, size, member, together->number[group]);
  return status;
}

static kiln_status_t join_ranks(kiln_together_t *together, const kiln_model_t *model, const kiln_call_t *call) {
  return join_own(together, KILN_GROUP_RANKS, call->communicator, model->rank, model->descriptor->ranks, call->error);
}

static kiln_status_t join_stages(kiln_together_t *together, const kiln_model_t *model, const kiln_call_t *call) {
  return join_own(together, KILN_GROUP_STAGES, call->stages, model->stage, model->descriptor->stages, call->error);
}

kiln_status_t kiln_ranks_check(const kiln_model_t *model, const kiln_call_t *call, const char *function) {
  kiln_together_t together = {.entry = function};
  const kiln_status_t status = join_ranks(&together, model, call);
  return status ? status : join_stages(&together, model, call);
}

/* Sets the communicator of replicas, which is optional. */
static kiln_status_t join_replicas(kiln_together_t *together, const kiln_model_t *model, const kiln_call_t *call) {
  const uint32_t replicas = model->descriptor->replicas;
  const kiln_status_t status = join(together, KILN_GROUP_REPLICAS, call->replicas, replicas, call->error);
  if (!status && call->replicas && call->replicas->rank != model->replica && kiln_shared_state(model->descriptor))
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT,
                          "%s: wrong communicator; expected replica %u of %u, as its model, got replica %u",
                          together->entry, model->replica, replicas, call->replicas->rank);
  return status;
}

kiln_status_t kiln_replicas_check(const kiln_model_t *model, const kiln_call_t *call, const char *function) {
  kiln_together_t together = {.entry = function};
  if (!kiln_shared_state(model->descriptor))
    return KILN_OK;
  if (!call->replicas)
    return kiln_error_set(call->error, KILN_NULL_ARGUMENT,
                          "%s: null given; expected a communicator of replicas with begin and finish", function);
  return join_replicas(&together, model, call);
}

static kiln_status_t run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                         const kiln_frame_t *frame) {
  kiln_together_t together = {.entry = model->descriptor->entries[entry].name,
                              .stream = model->variant->backend ? call->stream : NULL,
                              .failed = {KILN_OK, ""}};
  kiln_frame_t own = *frame;
  kiln_status_t status = check_waits(model, call, together.entry);
  if (!status)
    status = join_ranks(&together, model, call);
  if (!status)
    status = join_replicas(&together, model, call);
  if (!status)
    status = join_stages(&together, model, call);
  if (status)
    return status;
  own.together = &together;
  status = kiln_body_run(model, entry, &own, call->error);
  /* Finishes the pending collectives of a body that failed. */
  for (uint32_t group = 0; group < KILN_GROUPS; ++group)
    (void)kiln_finish_collectives(&own, group);
  /* The body returned this status, but has no message. */
  return together.failed.status ? kiln_error_set(call->error, together.failed.status, "%s", together.failed.message)
                                : status;
}

static const kiln_weight_t *whole(const kiln_descriptor_t *descriptor, uint32_t index, kiln_weight_t *room) {
  const kiln_weight_t *slice = kiln_kept_tensor(descriptor, index);
  const kiln_shard_t *shard = &descriptor->shards[index];
  if (shard->section_count == 0)
    return slice;
  *room = *slice;
  room->shape[shard->dim] = (int64_t)shard->extent;
  return room;
}

/* A slice of a tensor. */
typedef struct slice_t {
  const kiln_tensor_t *tensor;
  const kiln_weight_t *weight;
  kiln_spans_t spans;
} slice_t;

/* Reads elements of a slice of a tensor with a form. */
static void read_slice(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const slice_t *slice = tensor->parts;
  kiln_spans_t spans = slice->spans;
  kiln_span_t span;
  const uint64_t row_elements = (uint64_t)slice->weight->shape[spans.shard->dim] * spans.inner;
  spans.row = first / row_elements;
  spans.own = spans.row * row_elements;
  while (count > 0 && kiln_spans_next(&spans, &span)) {
    if (first >= span.own + span.count)
      continue;
    const uint64_t skipped = first - span.own, left = span.count - skipped;
    const size_t step = count < left ? count : (size_t)left;
    kiln_convert_read(slice->tensor, to, span.whole + skipped, step);
    first += step;
    to += step;
    count -= step;
  }
}

/* Returns the slice's start along the row or column axis. Only matrices have forms with groups. */
static uint64_t beginning(const slice_t *slice, uint32_t dim) {
  const kiln_shard_t *shard = slice->spans.shard;
  return shard->dim == dim ? kiln_section_first(shard, shard->sections, slice->spans.rank) : 0;
}

/* Groups are preserved if the slice is one section that starts at a boundary of groups or blocks. */
static bool has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  const slice_t *slice = tensor->parts;
  const kiln_form_t *form = slice->tensor->form;
  return tensor->rank == 2 && slice->spans.shard->section_count == 1 &&
         beginning(slice, 1) % kiln_format_whole(format, group) == 0 && form->has_groups &&
         form->has_groups(slice->tensor, format, group);
}

static void read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]) {
  const slice_t *slice = tensor->parts;
  kiln_part_t moved = *part;
  moved.row += (size_t)beginning(slice, 0);
  moved.first += (size_t)beginning(slice, 1);
  slice->tensor->form->read_groups(slice->tensor, &moved, arrays);
}

static const kiln_form_t slice_form = {read_slice, has_groups, read_groups};

/* Copies the slice's elements contiguously, in the file's type; releases pages of the file. */
static void gather(const slice_t *slice, char *to) {
  const kiln_tensor_t *tensor = slice->tensor;
  const size_t bytes = (size_t)kiln_safetensors_stored_bytes(tensor->dtype, 1);
  kiln_spans_t spans = slice->spans;
  kiln_span_t span;
  const char *kept = NULL, *end = NULL;
  while (kiln_spans_next(&spans, &span)) {
    const char *from = tensor->data + span.whole * bytes;
    memcpy(to + span.own * bytes, from, (size_t)span.count * bytes);
    kept = kept ? kept : from;
    end = from + span.count * bytes;
    if (tensor->source && end - kept >= READ_BYTES) {
      kiln_file_give_back(tensor->source, kept, end);
      kept = end;
    }
  }
  if (tensor->source && kept)
    kiln_file_give_back(tensor->source, kept, end);
}

/* Packs the slice packing->weight of the tensor. */
static kiln_status_t take_slice(const kiln_model_t *model, const kiln_packing_t *packing, const kiln_tensor_t *tensor,
                                kiln_error_t *error) {
  const kiln_weight_t *weight = packing->weight;
  const slice_t slice = {tensor, weight, kiln_spans_of(weight, packing->shard, packing->rank)};
  const uint64_t elements = kiln_elements_except(weight, weight->rank);
  const uint64_t bytes = kiln_safetensors_stored_bytes(tensor->dtype, elements);
  kiln_tensor_t piece = *tensor;
  kiln_spans_t spans = slice.spans;
  kiln_span_t span;
  void *memory = NULL;
  kiln_status_t status;
  memcpy(piece.shape, weight->shape, sizeof piece.shape);
  if (tensor->form) {
    piece.form = &slice_form;
    piece.parts = &slice;
  } else if (kiln_spans_next(&spans, &span) && span.count == elements) {
    piece.data += kiln_safetensors_stored_bytes(tensor->dtype, span.whole);
    piece.end = piece.begin + bytes; /* consistent with the number of bytes, which is all that matters */
  } else {
    if ((status = kiln_memory_allocate(&model->allocator, bytes, "a slice of a weight", &memory, error)))
      return status;
    gather(&slice, memory);
    piece.data = memory;
    piece.source = NULL;
  }
  status = kiln_take_tensor(packing, &piece, error);
  if (memory)
    model->allocator.release(model->allocator.self, memory);
  return status;
}

/* Packs sections that are stored one after another in the packed weights separately, directly from the file. */
static kiln_status_t take_sections(const kiln_model_t *model, const kiln_packing_t *packing,
                                   const kiln_tensor_t *tensor, kiln_error_t *error) {
  kiln_weight_t weight = *packing->weight;
  kiln_placement_t placement = *packing->placement;
  kiln_shard_t shard = *packing->shard;
  kiln_packing_t part = *packing;
  kiln_status_t status = KILN_OK;
  const uint64_t step = placement.tile > 0 ? 1 : kiln_elements_except(&weight, shard.dim);
  part.weight = &weight;
  part.placement = &placement;
  part.shard = &shard;
  shard.section_count = 1;
  for (uint32_t i = 0; !status && i < packing->shard->section_count; ++i, ++shard.sections) {
    weight.shape[shard.dim] = (int64_t)shard.sections->extent;
    status = take_slice(model, &part, tensor, error);
    placement.shift += shard.sections->extent * step;
  }
  return status;
}

static kiln_status_t take(const kiln_model_t *model, const kiln_packing_t *packing, const kiln_tensor_t *tensor,
                          kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const kiln_placement_t *placement = packing->placement;
  const uint32_t index = (uint32_t)(packing->weight - descriptor->weights);
  kiln_packing_t part = *packing;
  part.shard = &descriptor->shards[index];
  part.rank = model->rank;
  if (part.shard->section_count == 0)
    return kiln_take_tensor(&part, tensor, error);
  const bool is_contiguous = placement->tile > 0 ? placement->dim == part.shard->dim : part.shard->dim == 0;
  return is_contiguous ? take_sections(model, &part, tensor, error) : take_slice(model, &part, tensor, error);
}

static kiln_status_t spread(const kiln_model_t *model, uint32_t index, kiln_put_t put, const void *context,
                            kiln_error_t *error) {
  const kiln_weight_t *slice = kiln_kept_tensor(model->descriptor, index);
  const kiln_shard_t *shard = &model->descriptor->shards[index];
  const uint64_t elements = kiln_elements_except(slice, slice->rank);
  kiln_span_t span = {0, 0, elements}, part;
  kiln_status_t status = KILN_OK;
  if (shard->section_count == 0)
    return kiln_span_part(&span, elements, shard, model->replica, &part) ? put(context, &part, error) : KILN_OK;
  kiln_spans_t spans = kiln_spans_of(slice, shard, model->rank);
  while (!status && kiln_spans_next(&spans, &span))
    if (kiln_span_part(&span, elements, shard, model->replica, &part))
      status = put(context, &part, error);
  return status;
}

static void add_name(char *text, size_t room, const char *member, uint32_t number, uint32_t count) {
  const size_t length = strlen(text);
  if (count > 1)
    kiln_text_print(text + length, room - length, " (%s %u of %u)", member, number, count);
}

static void name(const kiln_model_t *model, char *text, size_t room) {
  add_name(text, room, "rank", model->rank, model->descriptor->ranks);
  add_name(text, room, "stage", model->stage, model->descriptor->stages);
}

static kiln_status_t refuse_slices(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  if (descriptor->stages > 1)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "%s: layers missing; expected all, got those of stage %u of %u",
                          function, model->stage, descriptor->stages);
  for (uint32_t i = 0; i < descriptor->weight_count; ++i)
    if (descriptor->shards[i].section_count > 0)
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "%s: weights sliced; expected whole ones, got a slice of \"%.*s\"", function,
                            KILN_NAME_SHOWN, descriptor->weights[i].name);
  return KILN_OK;
}

static kiln_status_t refuse_parts(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_weight_t *state = kiln_shared_state(model->descriptor);
  return state ? kiln_error_set(error, KILN_INVALID_ARGUMENT,
                                "%s: states sliced; expected whole ones, got a replica's part of \"%.*s\"", function,
                                KILN_NAME_SHOWN, state->name)
               : KILN_OK;
}

const kiln_sharding_t kiln_sharding = {create, take_stage_role, run,  copies,        whole,
                                       take,   spread,          name, refuse_slices, refuse_parts};
