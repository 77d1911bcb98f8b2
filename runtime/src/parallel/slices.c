// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Which elements of a tensor a rank has, and how the slices of all ranks are gathered. Only parallel models refer to
 * this file. */
#include "parallel/processes.h"
#include "weights/pack.h"

#include <string.h>

uint64_t kiln_whole_elements(const kiln_weight_t *slice, const kiln_shard_t *shard) {
  return kiln_elements_except(slice, shard->dim) * shard->extent;
}

kiln_spans_t kiln_spans_between(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank, uint64_t begin,
                                uint64_t end) {
  kiln_spans_t spans = {.shard = shard, .rank = rank, .inner = 1, .begin = begin, .end = end};
  for (uint32_t i = shard->dim + 1; i < slice->rank; ++i)
    spans.inner *= (uint64_t)slice->shape[i];
  spans.row = begin / (shard->extent * spans.inner);
  spans.own = spans.row * (uint64_t)slice->shape[shard->dim] * spans.inner;
  return spans;
}

kiln_spans_t kiln_spans_of(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank) {
  return kiln_spans_between(slice, shard, rank, 0, kiln_whole_elements(slice, shard));
}

bool kiln_spans_next(kiln_spans_t *spans, kiln_span_t *span) {
  const kiln_shard_t *shard = spans->shard;
  const uint64_t inner = spans->inner, row_elements = shard->extent * inner;
  for (; spans->row * row_elements < spans->end; ++spans->row, spans->section = 0)
    while (spans->section < shard->section_count) {
      const kiln_section_t *section = &shard->sections[spans->section++];
      const uint64_t begin = kiln_section_first(shard, section, spans->rank);
      const uint64_t skipped = spans->is_owner ? kiln_section_owned(section, spans->rank) - begin : 0;
      const uint64_t first = spans->row * row_elements + (begin + skipped) * inner;
      const uint64_t last = spans->row * row_elements + (begin + section->extent) * inner;
      const uint64_t own = spans->own + skipped * inner;
      const uint64_t from = first > spans->begin ? first : spans->begin, to = last < spans->end ? last : spans->end;
      spans->own += section->extent * inner;
      if (from < to && !(spans->is_owner && spans->rank % section->group != 0)) {
        *span = (kiln_span_t){own + (from - first), from, to - from};
        return true;
      }
    }
  return false;
}

bool kiln_span_part(const kiln_span_t *span, uint64_t elements, const kiln_shard_t *shard, uint32_t replica,
                    kiln_span_t *part) {
  const uint64_t count = shard->parts > 1 ? elements / shard->parts : elements;
  const uint64_t first = shard->parts > 1 ? replica * count : 0, end = first + count;
  const uint64_t from = span->own > first ? span->own : first;
  const uint64_t to = span->own + span->count < end ? span->own + span->count : end;
  if (from >= to)
    return false;
  *part = (kiln_span_t){from - first, span->whole + (from - span->own), to - from};
  return true;
}

const kiln_weight_t *kiln_shared_state(const kiln_descriptor_t *descriptor) {
  for (uint32_t i = 0; i < descriptor->state_count && descriptor->shards; ++i)
    if (descriptor->shards[descriptor->weight_count + i].parts > 1)
      return &descriptor->states[i].tensor;
  return NULL;
}

kiln_status_t kiln_ranks_do(const kiln_communicator_t *communicator, const kiln_collective_t *collective,
                            kiln_error_t *error) {
  const kiln_status_t status = communicator->begin(communicator->self, collective, error);
  return status ? status : communicator->finish(communicator->self, error);
}

static kiln_spans_t spans_of(const kiln_slices_t *slices, uint32_t rank, uint64_t begin, uint64_t end) {
  kiln_spans_t spans = kiln_spans_between(slices->slice, slices->shard, rank, begin, end);
  spans.is_owner = true;
  return spans;
}

/* Reads the elements of this rank between two elements of the whole tensor: contiguously, or to their place in that
 * piece. Returns the number of elements. */
static uint64_t read_own(const kiln_slices_t *slices, uint64_t begin, uint64_t end, char *to, bool is_piece,
                         kiln_error_t *error) {
  const uint64_t bytes = kiln_safetensors_stored_bytes(slices->slice->dtype, 1);
  kiln_spans_t spans = spans_of(slices, slices->communicator->rank, begin, end);
  kiln_span_t span;
  uint64_t count = 0;
  while (kiln_spans_next(&spans, &span)) {
    const uint64_t place = is_piece ? span.whole - begin : count;
    (void)slices->read(slices->context, span.own, span.count, to + place * bytes, error);
    count += span.count;
  }
  return count;
}

/* Receives the elements of another rank in that range, and copies them to their place. */
static kiln_status_t receive(const kiln_slices_t *slices, uint32_t rank, uint64_t begin, uint64_t end, char *piece,
                             char *part, kiln_error_t *error) {
  const uint64_t bytes = kiln_safetensors_stored_bytes(slices->slice->dtype, 1);
  kiln_collective_t collective = {.kind = KILN_RECEIVE, .element = slices->slice->dtype, .to = part, .peer = rank};
  kiln_spans_t spans = spans_of(slices, rank, begin, end), again = spans;
  kiln_span_t span;
  kiln_status_t status;
  while (kiln_spans_next(&spans, &span))
    collective.elements += span.count;
  if (collective.elements == 0)
    return KILN_OK;
  if ((status = kiln_ranks_do(slices->communicator, &collective, error)))
    return status;
  for (; kiln_spans_next(&again, &span); part += span.count * bytes)
    memcpy(piece + (span.whole - begin) * bytes, part, (size_t)(span.count * bytes));
  return KILN_OK;
}

kiln_status_t kiln_slices_gather(const kiln_slices_t *slices, uint64_t begin, uint64_t end, char *piece, char *part,
                                 kiln_error_t *own, kiln_error_t *error) {
  const kiln_communicator_t *communicator = slices->communicator;
  kiln_status_t status = KILN_OK;
  if (slices->is_read_alone) {
    (void)read_own(slices, begin, end, part, false, own);
    return KILN_OK;
  }
  if (communicator->rank == 0) {
    (void)read_own(slices, begin, end, piece, true, own);
    for (uint32_t rank = 1; !status && rank < communicator->size; ++rank)
      status = receive(slices, rank, begin, end, piece, part, error);
    return status;
  }
  const uint64_t count = read_own(slices, begin, end, part, false, own);
  const kiln_collective_t collective = {
      .kind = KILN_SEND, .element = slices->slice->dtype, .from = part, .elements = count, .peer = 0};
  return count ? kiln_ranks_do(communicator, &collective, error) : KILN_OK;
}
