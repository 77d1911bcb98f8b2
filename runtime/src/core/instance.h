// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A model that a program has created, model.c, and its files, save.c. */
#ifndef KILN_INSTANCE_H
#define KILN_INSTANCE_H

#include "core/tensors.h"
#include "os/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owner of the host's packed weights: the allocator, the system, a packed file (after its header), the program
 * itself. */
typedef enum kiln_packed_t {
  KILN_PACKED_ALLOCATED,
  KILN_PACKED_PAGES,
  KILN_PACKED_FILE,
  KILN_PACKED_EMBEDDED
} kiln_packed_t;
/* One page. */
enum { KILN_PACKED_HEAD_BYTES = 4096 };

/* The entries, weights and states that a pipeline stage has. Without pipeline parallelism it has all of them. */
typedef struct kiln_stage_role_t {
  uint32_t number;                    /* KILN_STAGE_ROLE_; 0 without pipeline parallelism */
  const kiln_body_t *bodies;          /* one per entry */
  const kiln_placement_t *placements; /* one per weight */
  uint64_t packed_bytes;
  bool is_silent; /* the stage has no outputs */
} kiln_stage_role_t;

struct kiln_model_t {
  const kiln_descriptor_t *descriptor;
  const kiln_variant_t *variant;
  kiln_allocator_t allocator;
  char *packed; /* null until weights are bound; on a device, if the variant has a backend */
  kiln_packed_t packed_kind;
  kiln_stage_role_t role;
  uint32_t rank, stage; /* of descriptor->ranks, descriptor->stages */
  uint32_t replica;     /* of descriptor->replicas, with optimiser-state sharding */
  bool copies_files;    /* copies the files that it binds: KILN_COPY_FILES */
  void *device;         /* owned by the backend */
};

/* Returns the byte offset in the arena of a copy of a state that the model has. */
static inline uint64_t kiln_state_place(const kiln_model_t *model, const kiln_state_t *state, uint32_t copy) {
  return state->offsets[model->role.number] + copy * state->stride;
}

/* The direction of a copy: between the host and the variant's memory, or within that. Zeroing has no source. */
typedef enum kiln_copy_t { KILN_COPY_IN, KILN_COPY_OUT, KILN_COPY_WITHIN, KILN_COPY_ZEROS } kiln_copy_t;

/* Values of an entry's symbols; for a batched entry, also those of each sequence. */
typedef struct kiln_extents_t {
  const int64_t *values;
  const kiln_sequence_t *sequences; /* null: not a batched entry */
} kiln_extents_t;

/* Runs a variant whose memory is a device's. Only the variant refers to it, so that a program without such a variant
 * does not link it. */
typedef struct kiln_backend_t {
  kiln_device_t kind;
  /* Creates model->device for the variant model->variant. KILN_NO_DEVICE: the next variant is tried. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* Releases model->device and model->packed. */
  void (*destroy)(kiln_model_t *model);
  /* Copies the host's packed weights to the device; the copy replaces model->packed. */
  kiln_status_t (*bind)(kiln_model_t *model, const char *packed, kiln_error_t *error);
  kiln_status_t (*allocate)(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error);
  void (*release)(const kiln_model_t *model, void *memory);
  kiln_status_t (*copy)(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                        kiln_error_t *error);
  /* Runs a call that kiln_run has checked, except for stream and memory. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                       const kiln_extents_t *extents, void *const *arguments);
} kiln_backend_t;
extern const kiln_backend_t kiln_cuda_backend; /* cuda.c */

/* kiln_create_on for any descriptor and CPU; options may be null. */
kiln_status_t kiln_model_create(const kiln_descriptor_t *descriptor, const kiln_cpu_t *cpu,
                                const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error);
/* Allocates memory aligned to KILN_ARENA_ALIGNMENT from the allocator; `what` is for the message. */
kiln_status_t kiln_memory_allocate(const kiln_allocator_t *allocator, uint64_t bytes, const char *what, void **memory,
                                   kiln_error_t *error);
/* Allocates zeroed memory for the packed weights from the caller's allocator, or from the system if there is none. */
kiln_status_t kiln_packed_allocate(const kiln_model_t *model, char **packed, kiln_packed_t *kind, kiln_error_t *error);
/* Whether calls may change the packed weights in place, in host memory. */
bool kiln_packed_is_written(const kiln_model_t *model);
/* Accepts null. */
void kiln_packed_release(const kiln_model_t *model, char *packed, kiln_packed_t kind);
/* Replaces the model's packed weights; on a device, by a copy of them. */
kiln_status_t kiln_packed_replace(kiln_model_t *model, char *packed, kiln_packed_t kind, kiln_error_t *error);

/* session.c. Both return KILN_SESSION_NOT_BEGUN unless the data that the arena keeps were initialised or are zeros;
 * `keeps`: KILN_KEEPS_ bits. kiln_check_kept, for entries, also marks them as initialised. */
kiln_status_t kiln_require_kept(const kiln_model_t *model, const void *arena, uint32_t keeps, const char *caller,
                                kiln_error_t *error);
kiln_status_t kiln_check_kept(const kiln_model_t *model, void *arena, uint32_t keeps, const char *caller,
                              kiln_error_t *error);
/* Marks states and optimiser state that the caller writes as initialised. */
void kiln_mark_kept(const kiln_model_t *model, void *arena, uint32_t keeps);

/* save.c: files of bound weights, optionally with the training state. */

/* The contents of a file. */
typedef struct kiln_contents_t {
  const kiln_model_t *model;
  const char *arena; /* of a training; null: only the weights */
  const kiln_training_t *training;
} kiln_contents_t;
/* Whether the file has a weight or, at indices after the weights, a state: of a tensor that is packed twice, only
 * the first; in a training file, the weights that the training updates. */
bool kiln_contents_has(const kiln_contents_t *contents, uint32_t index);
/* Reads elements of one copy of a weight or state, counted within the part that the model has. */
kiln_status_t kiln_contents_read(const kiln_contents_t *contents, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
/* Write the part of the file before all tensors, which are in the order of the indices, and the part after them. */
kiln_status_t kiln_contents_begin(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);
kiln_status_t kiln_contents_end(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_INSTANCE_H */
