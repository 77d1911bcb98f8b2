// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The collectives that entry-point glue of a parallel library calls, by means of the call's communicators. */
#include "core/run.h"
#include "parallel/processes.h"

#include <string.h>

static const char *name_of(uint32_t kind) {
  static const char *const names[] = {"all-reduce", "all-gather", "reduce-scatter", "exchange", "send", "receive"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

/* Copies the own part of an all-gather to its place; on a GPU the communicator takes it from any address. */
static const void *place_part(const kiln_together_t *together, const kiln_communicator_t *communicator,
                              const void *from, void *to, uint64_t bytes) {
  char *const place = (char *)to + communicator->rank * bytes;
  if (together->stream)
    return from;
  if (from != place)
    memcpy(place, from, (size_t)bytes);
  return place;
}

/* Reports a failure with the communicator's message. */
static int32_t fail(kiln_together_t *together, const kiln_group_t *group, const kiln_begun_t *begun,
                    const kiln_error_t *said) {
  const kiln_communicator_t *communicator = group->communicator;
  return (int32_t)kiln_error_set(
      &together->failed, said->status, "%s on %s %u of %u cannot finish its %s of %llu bytes: %s", together->entry,
      group->member, communicator->rank, communicator->size, name_of(begun->kind),
      (unsigned long long)begun->event.bytes, said->message[0] ? said->message : "no words from the communicator");
}

/* Finishes the oldest pending collective. */
static void finish_one(const kiln_frame_t *frame, kiln_group_t *group) {
  kiln_error_t said = {KILN_OK, ""};
  kiln_begun_t *begun = &group->begun[group->oldest];
  group->oldest = (group->oldest + 1) % KILN_MAX_BEGUN;
  --group->count;
  said.status = group->communicator->finish(group->communicator->self, &said);
  if (begun->event.kernel)
    frame->tracing->trace->end(frame->tracing->trace->self, &begun->event);
  if (said.status)
    (void)fail(frame->together, group, begun, &said);
}

int32_t kiln_finish_collectives(const kiln_frame_t *frame, uint32_t group) {
  kiln_together_t *together = frame->together;
  if (!together || group >= KILN_GROUPS)
    return KILN_INTERNAL_ERROR;
  while (!together->failed.status && together->groups[group].count > 0)
    finish_one(frame, &together->groups[group]);
  return (int32_t)together->failed.status;
}

void kiln_poll_collectives(const kiln_frame_t *frame) {
  for (uint32_t number = 0; frame->together && number < KILN_GROUPS; ++number) {
    const kiln_group_t *group = &frame->together->groups[number];
    if (group->count > 0 && group->communicator->poll && !frame->together->failed.status)
      group->communicator->poll(group->communicator->self);
  }
}

/* Returns the group, with room for one more collective; null: the call has failed already, or Kiln has a bug. */
static kiln_group_t *group_of(const kiln_frame_t *frame, uint32_t number, uint32_t kind) {
  kiln_together_t *together = frame->together;
  if (!together || number >= KILN_GROUPS || !name_of(kind))
    return NULL;
  kiln_group_t *group = &together->groups[number];
  if (!group->communicator)
    (void)kiln_error_set(&together->failed, KILN_NULL_ARGUMENT,
                         "%s: null given; expected a communicator of %ss with begin and finish", together->entry,
                         group->member);
  else if (group->count == KILN_MAX_BEGUN)
    finish_one(frame, group);
  return together->failed.status ? NULL : group;
}

/* *event describes the collective. */
static int32_t begin(const kiln_frame_t *frame, uint32_t number, kiln_collective_t *collective,
                     const kiln_event_t *event) {
  kiln_error_t said = {KILN_OK, ""};
  kiln_group_t *group = group_of(frame, number, collective->kind);
  if (!group)
    return frame->together && frame->together->failed.status ? (int32_t)frame->together->failed.status
                                                             : KILN_INTERNAL_ERROR;
  if (collective->elements == 0)
    return KILN_OK;
  collective->stream = frame->together->stream;
  const uint32_t slot = (group->oldest + group->count) % KILN_MAX_BEGUN;
  kiln_begun_t *begun = &group->begun[slot];
  *begun = (kiln_begun_t){collective->kind, *event};
  begun->event.worker = KILN_TRACE_TOGETHER + number * KILN_MAX_BEGUN + slot;
  if (event->kernel)
    frame->tracing->trace->begin(frame->tracing->trace->self, &begun->event);
  said.status = group->communicator->begin(group->communicator->self, collective, &said);
  if (said.status)
    return fail(frame->together, group, begun, &said);
  ++group->count;
  return KILN_OK;
}

int32_t kiln_begin_collective(const kiln_frame_t *frame, uint32_t number, uint32_t kind, const void *from, void *to,
                              uint64_t elements, uint32_t element) {
  const uint64_t bytes = kiln_safetensors_stored_bytes(element, elements);
  if (kind == KILN_SEND || kind == KILN_RECEIVE)
    return KILN_INTERNAL_ERROR;
  if (kind == KILN_ALL_GATHER && frame->together && number < KILN_GROUPS && elements > 0 &&
      frame->together->groups[number].communicator)
    from = place_part(frame->together, frame->together->groups[number].communicator, from, to, bytes);
  kiln_collective_t collective = {
      .kind = (kiln_collective_kind_t)kind, .element = element, .from = from, .to = to, .elements = elements};
  const kiln_event_t event = {.bytes = bytes};
  return begin(frame, number, &collective, &event);
}

/* The event of a collective, which has its own track in a trace, if the call is traced. */
static kiln_event_t event_of(const kiln_frame_t *frame, uint32_t kind, uint64_t bytes, const char *layer,
                             int64_t number) {
  if (!frame->tracing)
    return (kiln_event_t){.bytes = bytes};
  return (kiln_event_t){frame->tracing->event.entry, name_of(kind), layer, number, 0, bytes, -1, 0};
}

/* Returns the stage that a transfer goes to or comes from. */
static uint32_t peer_of(uint32_t kind, uint32_t way, uint32_t stage, uint32_t stages) {
  if (way == KILN_WAY_ACROSS)
    return stages - 1 - stage;
  return (kind == KILN_SEND) == (way == KILN_WAY_ONWARD) ? stage + 1 : stage - 1;
}

int32_t kiln_begin_move(const kiln_frame_t *frame, uint32_t kind, uint32_t way, void *at, uint64_t elements,
                        uint32_t element, const char *layer, int64_t number) {
  const kiln_communicator_t *stages = frame->together ? frame->together->groups[KILN_GROUP_STAGES].communicator : NULL;
  const uint64_t bytes = kiln_safetensors_stored_bytes(element, elements);
  const bool is_sent = kind == KILN_SEND;
  kiln_collective_t collective = {.kind = (kiln_collective_kind_t)kind,
                                  .element = element,
                                  .from = is_sent ? at : NULL,
                                  .to = is_sent ? NULL : at,
                                  .elements = elements,
                                  .peer = stages ? peer_of(kind, way, stages->rank, stages->size) : 0};
  const kiln_event_t event = is_sent ? event_of(frame, kind, bytes, layer, number) : (kiln_event_t){.bytes = bytes};
  return begin(frame, KILN_GROUP_STAGES, &collective, &event);
}

/* Returns the address of the sum for the own part; without a communicator, which is reported later, any address. */
static void *own_part(const kiln_frame_t *frame, uint32_t number, void *at, uint64_t bytes) {
  const kiln_communicator_t *communicator =
      frame->together && number < KILN_GROUPS ? frame->together->groups[number].communicator : NULL;
  return (char *)at + (communicator ? communicator->rank * bytes : 0);
}

int32_t kiln_begin_sum(const kiln_frame_t *frame, uint32_t number, uint32_t kind, void *at, uint64_t elements,
                       uint32_t element, const char *layer, int64_t layer_number) {
  const uint64_t bytes = kiln_safetensors_stored_bytes(element, elements);
  kiln_collective_t collective = {.kind = (kiln_collective_kind_t)kind,
                                  .element = element,
                                  .from = at,
                                  .to = kind == KILN_REDUCE_SCATTER ? own_part(frame, number, at, bytes) : at,
                                  .elements = elements};
  const kiln_event_t event = event_of(frame, kind, bytes, layer, layer_number);
  return begin(frame, number, &collective, &event);
}
