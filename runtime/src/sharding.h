/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Models of several ranks, sharding.c. */
#ifndef KILN_SHARDING_H
#define KILN_SHARDING_H

#include "bind.h"
#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

/* More collectives are not under way over a group at a time. */
enum { KILN_MAX_BEGUN = 32 };
/* What is said of a collective: by its kind and bytes when it fails, to a trace if it has a name. */
typedef struct kiln_begun_t {
  uint32_t kind;
  kiln_event_t event;
} kiln_begun_t;
/* Processes that do something together. */
typedef struct kiln_group_t {
  const kiln_communicator_t *communicator; /* null: the library is not for several */
  const char *member;                      /* "rank" */
  uint32_t oldest, count;                  /* of what is begun, which is a ring */
  kiln_begun_t begun[KILN_MAX_BEGUN];
} kiln_group_t;
/* What a call's processes are and do. */
typedef struct kiln_together_t {
  int32_t number[KILN_GROUPS]; /* first: kernels read it here */
  kiln_group_t groups[KILN_GROUPS];
  const char *entry;
  void *stream;        /* of a GPU, on which collectives are; null: on a CPU */
  kiln_error_t failed; /* the first collective that failed */
} kiln_together_t;

/* Elements that lie side by side in a slice, from `own` on, and in the whole tensor, from `whole` on. */
typedef struct kiln_span_t {
  uint64_t own, whole, count;
} kiln_span_t;
/* The spans of a rank's slice, in order, as far as they are between two elements of the whole tensor. */
typedef struct kiln_spans_t {
  const kiln_shard_t *shard;
  uint32_t rank, section;        /* section: the next */
  uint64_t inner;                /* elements of one step along the axis */
  uint64_t begin, end, row, own; /* row: of those that each have all of the axis */
  bool is_owner;                 /* of what several ranks have, only the first of these has spans */
} kiln_spans_t;
kiln_spans_t kiln_spans_between(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank, uint64_t begin,
                                uint64_t end);
/* Those of all of the slice. */
kiln_spans_t kiln_spans_of(const kiln_weight_t *slice, const kiln_shard_t *shard, uint32_t rank);
/* False: there is none left. */
bool kiln_spans_next(kiln_spans_t *spans, kiln_span_t *span);
/* Elements of the tensor that a slice is of. */
uint64_t kiln_whole_elements(const kiln_weight_t *slice, const kiln_shard_t *shard);
/* Of elements that lie side by side in a slice those that are in a replica's part of it, from `own` on in that. False:
 * there are none. */
bool kiln_span_part(const kiln_span_t *span, uint64_t elements, const kiln_shard_t *shard, uint32_t replica,
                    kiln_span_t *part);
/* What is a rank's of a section begins here. */
static inline uint64_t kiln_section_owned(const kiln_section_t *section, uint32_t rank) {
  return section->first + rank / section->group * section->step;
}
/* Where the rank's section begins. All are of one length, so the last one begins within that before if the axis has
 * fewer elements: what both have is that one's. */
static inline uint64_t kiln_section_first(const kiln_shard_t *shard, const kiln_section_t *section, uint32_t rank) {
  const uint64_t owned = kiln_section_owned(section, rank), last = shard->extent - section->extent;
  return owned < last ? owned : last;
}

/* Slices of a tensor that the members of a communicator have, whose numbers are the ranks; and how own elements are
 * read. */
typedef struct kiln_slices_t {
  const kiln_communicator_t *communicator;
  const kiln_weight_t *slice;
  const kiln_shard_t *shard;
  kiln_status_t (*read)(const void *context, uint64_t first, uint64_t count, void *values, kiln_error_t *error);
  const void *context;
  bool is_read_alone; /* own elements are read, and stay where they are */
} kiln_slices_t;
/* Elements `begin` .. `end` of the whole tensor come to rank 0's `piece`; `part` has as much room. All members call it.
 * What cannot be read is in *own; the result is the communicator's. */
kiln_status_t kiln_slices_gather(const kiln_slices_t *slices, uint64_t begin, uint64_t end, char *piece, char *part,
                                 kiln_error_t *own, kiln_error_t *error);
/* Begins a collective, and waits for it. */
kiln_status_t kiln_ranks_do(const kiln_communicator_t *communicator, const kiln_collective_t *collective,
                            kiln_error_t *error);

/* What the rest of the run time calls, if a descriptor has it. */
typedef kiln_status_t (*kiln_put_t)(const void *context, const kiln_span_t *span, kiln_error_t *error);
typedef struct kiln_sharding_t {
  /* Makes model->rank what the options say; with that, or the descriptor's slices, something may be wrong. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* Makes of model->role, which is all, a stage's. */
  void (*take_role)(kiln_model_t *model);
  /* kiln_body_run with the call's communicator, if it is the model's. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const kiln_frame_t *frame);
  /* Copies of a weight or a state that the model has, and in *first the first of them. */
  uint32_t (*copies)(const kiln_model_t *model, const kiln_weight_t *weight, uint32_t *first);
  /* A weight, or behind the weights a state, as a file has it: itself or *room. */
  const kiln_weight_t *(*whole)(const kiln_descriptor_t *descriptor, uint32_t index, kiln_weight_t *room);
  /* kiln_take_tensor of the model's slice. */
  kiln_status_t (*take)(const kiln_model_t *model, const kiln_packing_t *packing, const kiln_tensor_t *tensor,
                        kiln_error_t *error);
  /* Calls `put` for each span of the model's slice of a weight or, behind these, a state. */
  kiln_status_t (*spread)(const kiln_model_t *model, uint32_t index, kiln_put_t put, const void *context,
                          kiln_error_t *error);
  /* Adds " (rank 1 of 4)" to a text, as far as there is room. */
  void (*name)(const kiln_model_t *model, char *text, size_t room);
  /* Refuses what would take slices for whole weights, if there are any. */
  kiln_status_t (*refuse_slices)(const kiln_model_t *model, const char *function, kiln_error_t *error);
  /* The same of a replica's parts of states. */
  kiln_status_t (*refuse_parts)(const kiln_model_t *model, const char *function, kiln_error_t *error);
} kiln_sharding_t;
/* That a call has the model's communicators of ranks and of stages, and that of replicas if these share out states. */
kiln_status_t kiln_ranks_check(const kiln_model_t *model, const kiln_call_t *call, const char *function);
kiln_status_t kiln_replicas_check(const kiln_model_t *model, const kiln_call_t *call, const char *function);
/* A state of which each replica has a part; null: there is none. */
const kiln_weight_t *kiln_shared_state(const kiln_descriptor_t *descriptor);

/* Copies of a weight or a state that the model has, and the first of them, of those that a file has. */
static inline uint32_t kiln_own_copies(const kiln_model_t *model, const kiln_weight_t *weight, uint32_t *first) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  *first = 0;
  return sharding ? sharding->copies(model, weight, first) : weight->copies;
}
/* The first one that a stage has. */
static inline uint32_t kiln_first_copy(const kiln_descriptor_t *descriptor, const kiln_weight_t *weight,
                                       uint32_t stage) {
  return weight->flags & KILN_WEIGHT_OF_STAGE ? kiln_first_layer(weight->copies, descriptor->stages, stage) : 0;
}

static inline kiln_status_t kiln_refuse_slices(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->refuse_slices(model, function, error) : KILN_OK;
}
static inline kiln_status_t kiln_refuse_parts(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->refuse_parts(model, function, error) : KILN_OK;
}
/* The tensor of the file that a weight is, or a slice of. */
/* Weights, and behind them states. */
static inline const kiln_weight_t *kiln_kept_tensor(const kiln_descriptor_t *descriptor, uint32_t index) {
  return index < descriptor->weight_count ? &descriptor->weights[index]
                                          : &descriptor->states[index - descriptor->weight_count].tensor;
}
static inline const kiln_weight_t *kiln_whole_weight(const kiln_descriptor_t *descriptor, uint32_t index,
                                                     kiln_weight_t *room) {
  return descriptor->sharding ? descriptor->sharding->whole(descriptor, index, room)
                              : kiln_kept_tensor(descriptor, index);
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_SHARDING_H */
