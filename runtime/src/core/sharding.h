// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What the run time knows of parallel models: a table of functions that only their descriptors refer to, so that other
 * programs link none of parallel/. */
#ifndef KILN_SHARDING_H
#define KILN_SHARDING_H

#include "core/instance.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A range of elements that is contiguous in both a slice, from `own` on, and the whole tensor, from `whole` on. */
typedef struct kiln_span_t {
  uint64_t own, whole, count;
} kiln_span_t;
/* The start of the range of a section that only this rank owns. */
static inline uint64_t kiln_section_owned(const kiln_section_t *section, uint32_t rank) {
  return section->first + rank / section->group * section->step;
}
/* The start of the rank's section. All sections have the same size, so if the axis has fewer elements, the last one
 * starts inside the previous one; the previous one owns the overlap. */
static inline uint64_t kiln_section_first(const kiln_shard_t *shard, const kiln_section_t *section, uint32_t rank) {
  const uint64_t owned = kiln_section_owned(section, rank), last = shard->extent - section->extent;
  return owned < last ? owned : last;
}

struct kiln_packing_t; /* weights/bind.h */
/* The functions that the rest of the runtime calls for a parallel descriptor. */
typedef kiln_status_t (*kiln_put_t)(const void *context, const kiln_span_t *span, kiln_error_t *error);
typedef struct kiln_sharding_t {
  /* Sets model->rank and the like from the options; validates these and the descriptor's slices. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* Replaces model->role, which covers everything, by that of a pipeline stage. */
  void (*take_stage_role)(kiln_model_t *model);
  /* kiln_body_run with the call's communicators, after checking that they match the model. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const kiln_frame_t *frame);
  /* Returns the number of copies of a weight or a state that the model has; *first is the first of them. */
  uint32_t (*copies)(const kiln_model_t *model, const kiln_weight_t *weight, uint32_t *first);
  /* Returns a weight, or at indices after the weights a state, with its shape in a file: itself or *room. */
  const kiln_weight_t *(*whole)(const kiln_descriptor_t *descriptor, uint32_t index, kiln_weight_t *room);
  /* kiln_take_tensor for the model's slice. */
  kiln_status_t (*take)(const kiln_model_t *model, const struct kiln_packing_t *packing, const kiln_tensor_t *tensor,
                        kiln_error_t *error);
  /* Calls `put` for each span of the model's slice of a weight or, at indices after the weights, of a state. */
  kiln_status_t (*spread)(const kiln_model_t *model, uint32_t index, kiln_put_t put, const void *context,
                          kiln_error_t *error);
  /* Appends " (rank 1 of 4)" to a text if there is room. */
  void (*name)(const kiln_model_t *model, char *text, size_t room);
  /* Refuses a function that needs whole weights if there are slices. */
  kiln_status_t (*refuse_slices)(const kiln_model_t *model, const char *function, kiln_error_t *error);
  /* Refuses a function that needs whole states if replicas have parts of them. */
  kiln_status_t (*refuse_parts)(const kiln_model_t *model, const char *function, kiln_error_t *error);
} kiln_sharding_t;

/* Returns the number of copies of a weight or a state that the model has, and the first of them, among those in a
 * file. */
static inline uint32_t kiln_own_copies(const kiln_model_t *model, const kiln_weight_t *weight, uint32_t *first) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  *first = 0;
  return sharding ? sharding->copies(model, weight, first) : weight->copies;
}

static inline kiln_status_t kiln_refuse_slices(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->refuse_slices(model, function, error) : KILN_OK;
}
static inline kiln_status_t kiln_refuse_parts(const kiln_model_t *model, const char *function, kiln_error_t *error) {
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  return sharding ? sharding->refuse_parts(model, function, error) : KILN_OK;
}
/* Returns a weight or, at indices after the weights, a state. */
static inline const kiln_weight_t *kiln_kept_tensor(const kiln_descriptor_t *descriptor, uint32_t index) {
  return index < descriptor->weight_count ? &descriptor->weights[index]
                                          : &descriptor->states[index - descriptor->weight_count].tensor;
}
/* Returns the tensor of the file that a weight is, or is a slice of. */
static inline const kiln_weight_t *kiln_whole_weight(const kiln_descriptor_t *descriptor, uint32_t index,
                                                     kiln_weight_t *room) {
  return descriptor->sharding ? descriptor->sharding->whole(descriptor, index, room)
                              : kiln_kept_tensor(descriptor, index);
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_SHARDING_H */
