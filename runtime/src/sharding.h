/* SPDX-License-Identifier: Apache-2.0 */
/* Models of several ranks, sharding.c. A part of internal.h, which includes it. */
#ifndef KILN_SHARDING_H
#define KILN_SHARDING_H

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
  kiln_error_t failed; /* the first collective that failed */
} kiln_together_t;
/* What the rest of the run time calls, if a descriptor has it. */
typedef struct kiln_sharding_t {
  /* Makes model->rank what the options say; with that, or the descriptor's slices, something may be wrong. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* kiln_body_run with the call's communicator, if it is the model's. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const kiln_frame_t *frame);
  /* A weight as the file has it: itself or *room. */
  const kiln_weight_t *(*whole)(const kiln_descriptor_t *descriptor, uint32_t index, kiln_weight_t *room);
  /* kiln_take_tensor of the model's slice. */
  kiln_status_t (*take)(const kiln_model_t *model, const kiln_packing_t *packing, kiln_tensor_t *tensor,
                        kiln_error_t *error);
  /* Adds " (rank 1 of 4)" to a text, as far as there is room. */
  void (*name)(const kiln_model_t *model, char *text, size_t room);
  /* Whether a rank has two different parts of a weight's tensor. */
  bool (*has_parts)(const kiln_descriptor_t *descriptor, uint32_t index);
  /* Refuses what would take slices for whole weights, if there are any. */
  kiln_status_t (*refuse_slices)(const kiln_model_t *model, const char *function, kiln_error_t *error);
} kiln_sharding_t;
static inline kiln_status_t kiln_refuse_slices(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->refuse_slices(model, function, error) : KILN_OK;
}
/* The tensor of the file that a weight is, or a slice of. */
static inline const kiln_weight_t *kiln_whole_weight(const kiln_descriptor_t *descriptor, uint32_t index,
                                                     kiln_weight_t *room) {
  return descriptor->sharding ? descriptor->sharding->whole(descriptor, index, room) : &descriptor->weights[index];
}

#endif /* KILN_SHARDING_H */
