// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A model that a program has made, model.c, and its files, save.c. */
#ifndef KILN_INSTANCE_H
#define KILN_INSTANCE_H

#include "cpu.h"
#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose memory the host's packed weights are: the allocator's, the system's, a packed file's behind its head, the
 * program's own. */
typedef enum kiln_packed_t {
  KILN_PACKED_ALLOCATED,
  KILN_PACKED_PAGES,
  KILN_PACKED_FILE,
  KILN_PACKED_EMBEDDED
} kiln_packed_t;
/* A page. */
enum { KILN_PACKED_HEAD_BYTES = 4096 };

/* What a model computes of its entries, and has of weights and states. Of one that is no stage it is all. */
typedef struct kiln_role_t {
  uint32_t number;                    /* KILN_ROLE_; 0 of one that is no stage */
  const kiln_body_t *bodies;          /* one an entry */
  const kiln_placement_t *placements; /* one a weight */
  uint64_t packed_bytes;
  bool is_silent; /* it has no outputs */
} kiln_role_t;

struct kiln_model_t {
  const kiln_descriptor_t *descriptor;
  const kiln_variant_t *variant;
  kiln_allocator_t allocator;
  char *packed; /* null until weights are bound; on a device, if the variant has a backend */
  kiln_packed_t packed_kind;
  kiln_role_t role;
  uint32_t rank, stage; /* of descriptor->ranks, descriptor->stages */
  uint32_t replica;     /* of descriptor->replicas, where these share out states */
  bool copies_files;    /* whose weights it binds: KILN_COPY_FILES */
  void *device;         /* the backend's */
};

/* Where a copy that the model has of a state lies, in bytes from the beginning of the arena. */
static inline uint64_t kiln_state_place(const kiln_model_t *model, const kiln_state_t *state, uint32_t copy) {
  return state->offsets[model->role.number] + copy * state->stride;
}

/* Where a copy goes: between the host and the variant's memory, or within that; zeros come from nowhere. */
typedef enum kiln_copy_t { KILN_COPY_IN, KILN_COPY_OUT, KILN_COPY_WITHIN, KILN_COPY_ZEROS } kiln_copy_t;

/* Values of an entry's symbols; of a batch, also what each sequence has of its own. */
typedef struct kiln_extents_t {
  const int64_t *values;
  const kiln_sequence_t *sequences; /* null: the entry is of one */
} kiln_extents_t;

/* What runs a variant whose memory is a device's. Only the variant refers to it, so that a program without such a
 * variant links none of it. */
typedef struct kiln_backend_t {
  kiln_device_t kind;
  /* Makes model->device, of the variant that model->variant is. KILN_NO_DEVICE: the next variant may do. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* Lets go of model->device and model->packed. */
  void (*destroy)(kiln_model_t *model);
  /* Makes a copy of the host's packed weights, which takes the place of model->packed. */
  kiln_status_t (*bind)(kiln_model_t *model, const char *packed, kiln_error_t *error);
  kiln_status_t (*allocate)(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error);
  void (*release)(const kiln_model_t *model, void *memory);
  kiln_status_t (*copy)(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                        kiln_error_t *error);
  /* A call that kiln_run has checked, but for stream and memory. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                       const kiln_extents_t *extents, void *const *arguments);
} kiln_backend_t;
extern const kiln_backend_t kiln_cuda_backend; /* cuda.c */

/* kiln_create_on for any descriptor and CPU; options null: none. */
kiln_status_t kiln_model_create(const kiln_descriptor_t *descriptor, const kiln_cpu_t *cpu,
                                const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error);
/* KILN_ARENA_ALIGNMENT aligned memory from the allocator; `what` is for the message. */
kiln_status_t kiln_memory_allocate(const kiln_allocator_t *allocator, uint64_t bytes, const char *what, void **memory,
                                   kiln_error_t *error);
/* Zeroed memory for the packed weights: the allocator's, or without one of the caller's the system's. */
kiln_status_t kiln_packed_allocate(const kiln_model_t *model, char **packed, kiln_packed_t *kind, kiln_error_t *error);
/* Whether calls may change packed weights where they lie, in the host's memory. */
bool kiln_packed_is_written(const kiln_model_t *model);
/* null is fine. */
void kiln_packed_release(const kiln_model_t *model, char *packed, kiln_packed_t kind);
/* Packed weights take the place of those that the model had; on a device a copy of them does. */
kiln_status_t kiln_packed_replace(kiln_model_t *model, char *packed, kiln_packed_t kind, kiln_error_t *error);

/* session.c. KILN_SESSION_NOT_BEGUN unless what the arena keeps was begun, or is zeros; `keeps`: KILN_KEEPS_ bits.
 * check also marks it as begun, for an entry of them. */
kiln_status_t kiln_require_kept(const kiln_model_t *model, const void *arena, uint32_t keeps, const char *caller,
                                kiln_error_t *error);
kiln_status_t kiln_check_kept(const kiln_model_t *model, void *arena, uint32_t keeps, const char *caller,
                              kiln_error_t *error);
/* Of states, and of what a training keeps, that the caller writes. */
void kiln_mark_kept(const kiln_model_t *model, void *arena, uint32_t keeps);

/* save.c: files of bound weights, also with what a training goes on from. */

/* What a file has. */
typedef struct kiln_contents_t {
  const kiln_model_t *model;
  const char *arena; /* of a training; null: the weights alone */
  const kiln_training_t *training;
} kiln_contents_t;
/* Whether it has a weight or, behind the weights, a state: of what is packed twice, only the first; of a training what
 * that changes. */
bool kiln_contents_has(const kiln_contents_t *contents, uint32_t index);
/* Elements of a copy of one, of what the model has. */
kiln_status_t kiln_contents_read(const kiln_contents_t *contents, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
/* Writes what is before all tensors, whose order is that of the indices, and what is behind them. */
kiln_status_t kiln_contents_begin(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);
kiln_status_t kiln_contents_end(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_INSTANCE_H */
