// SPDX-License-Identifier: Apache-2.0
/* What host code of a library for several ranks calls: they do something together, by the communicator of the call. */
#include "internal.h"

#include <string.h>

static const char *name_of(uint32_t kind) {
  static const char *const names[] = {"all-reduce", "all-gather", "reduce-scatter", "exchange"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

/* The own part of an all-gather goes to its place. */
static const void *place_part(const kiln_ranks_t *ranks, const void *from, void *to, uint64_t bytes) {
  char *const place = (char *)to + ranks->communicator->rank * bytes;
  if (from != place)
    memcpy(place, from, (size_t)bytes);
  return place;
}

/* With what the communicator said. */
static kiln_status_t fail(kiln_ranks_t *ranks, const kiln_collective_t *collective, kiln_status_t status,
                          const char *words) {
  const kiln_communicator_t *communicator = ranks->communicator;
  return kiln_error_set(&ranks->failed, status, "%s on rank %u of %u cannot finish its %s of %llu bytes: %s",
                        ranks->entry, communicator->rank, communicator->size, name_of(collective->kind),
                        (unsigned long long)kiln_safetensors_stored_bytes(collective->element, collective->elements),
                        words[0] ? words : "no words from the communicator");
}

int32_t kiln_collect(const kiln_frame_t *frame, uint32_t kind, const void *from, void *to, uint64_t elements,
                     uint32_t element) {
  kiln_ranks_t *ranks = frame->ranks;
  const uint64_t bytes = kiln_safetensors_stored_bytes(element, elements);
  kiln_error_t said = {KILN_OK, ""};
  if (!ranks || !name_of(kind))
    return KILN_INTERNAL_ERROR;
  if (ranks->failed.status || elements == 0)
    return (int32_t)ranks->failed.status;
  if (kind == KILN_ALL_GATHER)
    from = place_part(ranks, from, to, bytes);
  const kiln_communicator_t *communicator = ranks->communicator;
  const kiln_collective_t collective = {
      .kind = (kiln_collective_kind_t)kind, .element = element, .from = from, .to = to, .elements = elements};
  kiln_status_t status = communicator->begin(communicator->self, &collective, &said);
  if (!status)
    status = communicator->finish(communicator->self, &said);
  return (int32_t)(status ? fail(ranks, &collective, status, said.message) : KILN_OK);
}
