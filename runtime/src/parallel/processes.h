/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Parallel models: the processes of a call, and the slices of tensors that they have. */
#ifndef KILN_PROCESSES_H
#define KILN_PROCESSES_H

#include "core/sharding.h"
#include "weights/bind.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of pending collectives of a group. */
enum { KILN_MAX_BEGUN = 32 };
/* The description of a collective: its kind and bytes for errors, and an event for a trace if it has a name. */
typedef struct kiln_begun_t {
  uint32_t kind;
  kiln_event_t event;
} kiln_begun_t;
/* A group of communicating processes. */
typedef struct kiln_group_t {
  const kiln_communicator_t *communicator; /* null: the library does not have this group */
  const char *member;                      /* "rank" */
  uint32_t oldest, count;                  /* ring buffer of pending collectives */
  kiln_begun_t begun[KILN_MAX_BEGUN];
} kiln_group_t;
/* The groups of a call and the own numbers in them. */
typedef struct kiln_together_t {
  int32_t number[KILN_GROUPS]; /* first member: kernels read it at this offset */
  kiln_group_t groups[KILN_GROUPS];
  const char *entry;
  void *stream;        /* GPU stream of the collectives; null: on a CPU */
  kiln_error_t failed; /* the first collective that failed */
} kiln_together_t;

/* Iterates in order over the spans of a rank's slice, clipped to a range of elements of the whole tensor. */
typedef struct kiln_spans_t {
  const kiln_shard_t *shard;
  uint32_t rank, section;        /* section: the next one */
  uint64_t inner;                /* elements per index of the axis */
  uint64_t begin, end, row, own; /* row: index over the dimensions outside the axis */
  bool is_owner;                 /* replicated elements: only the first of their ranks has spans */
} kiln_spans_t;
kiln_spans_t kiln_spans_between(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank, uint64_t begin,
                                uint64_t end);
/* The spans of the whole slice. */
kiln_spans_t kiln_spans_of(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank);
/* False: there are no more spans. */
bool kiln_spans_next(kiln_spans_t *spans, kiln_span_t *span);
/* Returns the number of elements of the tensor that a slice belongs to. */
uint64_t kiln_whole_elements(const kiln_weight_t *slice, const kiln_shard_t *shard);
/* Intersects a span of a slice with a replica's part of it, counted from `own` on within the part. False: the
 * intersection is empty. */
bool kiln_span_part(const kiln_span_t *span, uint64_t elements, const kiln_shard_t *shard, uint32_t replica,
                    kiln_span_t *part);
/* The slices of a tensor on the members of a communicator, whose numbers are the ranks; and a function that reads
 * own elements. */
typedef struct kiln_slices_t {
  const kiln_communicator_t *communicator;
  const kiln_weight_t *slice;
  const kiln_shard_t *shard;
  kiln_status_t (*read)(const void *context, uint64_t first, uint64_t count, void *values, kiln_error_t *error);
  const void *context;
  bool is_read_alone; /* own elements are only read, and stay in place */
} kiln_slices_t;
/* Gathers elements `begin` .. `end` of the whole tensor in rank 0's `piece`; `part` is a buffer of the same size.
 * All members call it. Read errors are reported in *own; the result is the communicator's status. */
kiln_status_t kiln_slices_gather(const kiln_slices_t *slices, uint64_t begin, uint64_t end, char *piece, char *part,
                                 kiln_error_t *own, kiln_error_t *error);
/* Begins a collective and waits for it. */
kiln_status_t kiln_ranks_do(const kiln_communicator_t *communicator, const kiln_collective_t *collective,
                            kiln_error_t *error);

/* Check that a call has the model's rank and stage communicators, and the replica communicator with optimiser-state
 * sharding. */
kiln_status_t kiln_ranks_check(const kiln_model_t *model, const kiln_call_t *call, const char *function);
kiln_status_t kiln_replicas_check(const kiln_model_t *model, const kiln_call_t *call, const char *function);
/* Returns a state of which each replica has a part; null: there is none. */
const kiln_weight_t *kiln_shared_state(const kiln_descriptor_t *descriptor);

/* Returns the first copy that a pipeline stage has. */
static inline uint32_t kiln_first_copy(const kiln_descriptor_t *descriptor, const kiln_weight_t *weight,
                                       uint32_t stage) {
  return weight->flags & KILN_WEIGHT_OF_STAGE ? kiln_first_layer(weight->copies, descriptor->stages, stage) : 0;
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_PROCESSES_H */
