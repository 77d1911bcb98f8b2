// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds weights from the files of a checkpoint. */
#ifndef KILN_BIND_H
#define KILN_BIND_H

#include "readers/files.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bind.c */

/* Whether a path is that of an index of several files. */
bool kiln_is_index(const char *path);
/* Maps a safetensors file, or the files of an index, passes their tensors to `take`, and unmaps them. */
kiln_status_t kiln_checkpoint_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                                   kiln_error_t *error);

/* Returns the name as one string, for a message. */
const char *kiln_name_text(const kiln_name_t *name, char text[KILN_NAME_SHOWN + 1]);
bool kiln_weight_has_shape(const kiln_weight_t *weight, const kiln_tensor_t *tensor);
/* Checks the tensor of a copy of a weight and marks it as used; null: the file has none. */
kiln_status_t kiln_check_weight(const kiln_weight_t *weight, const kiln_name_t *name, kiln_tensor_t *tensor,
                                kiln_error_t *error);
/* A copy of a weight that is being bound. */
typedef struct kiln_packing_t {
  const kiln_weight_t *weight;
  const kiln_placement_t *placement;
  const kiln_name_t *name;
  char *packed;              /* at the placement's offset for that copy, zeroed */
  const kiln_shard_t *shard; /* sharded weights: the slice; else null, or without sections */
  uint32_t rank;             /* the rank of the slice */
} kiln_packing_t;
/* Packs a tensor that has been checked. */
kiln_status_t kiln_take_tensor(const kiln_packing_t *packing, const kiln_tensor_t *tensor, kiln_error_t *error);
/* Allocates the memory for computing derived weights; null if there are none. */
kiln_status_t kiln_derive_prepare(const kiln_model_t *model, void **arena, kiln_error_t *error);
/* Computes the derived weights, unless binding failed with `status`, and releases the memory; returns the status of
 * both. If the computation fails, no weights are bound. */
kiln_status_t kiln_derive(kiln_model_t *model, void *arena, kiln_status_t status, kiln_error_t *error);
/* Checks all tensors that are not yet used against the model's weights, and packs them. */
kiln_status_t kiln_bind_tensors(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* Bytes of one copy in a weight file. */
uint64_t kiln_weight_bytes(const kiln_weight_t *weight);
/* A training's step and seed as tensors of a weight file, in the order of kiln_training_t. */
enum { KILN_TRAINING_NUMBERS = 2 };
extern const kiln_weight_t kiln_training_numbers[KILN_TRAINING_NUMBERS];
/* Writes the weight's name for one copy: "{}" becomes the copy's number. */
void kiln_weight_name(const kiln_weight_t *weight, uint32_t copy, kiln_name_t *name);

/* differences.c */

typedef enum kiln_difference_kind_t {
  KILN_DIFFERS_MISSING = 0,
  KILN_DIFFERS_SHAPE = 1,
  KILN_DIFFERS_TYPE = 2,
  KILN_DIFFERS_UNEXPECTED = 3
} kiln_difference_kind_t;
enum { KILN_DIFFERENCE_KINDS = 4 };
/* A difference between a model and a file. */
typedef struct kiln_difference_t {
  kiln_difference_kind_t kind;
  const kiln_weight_t *weight; /* as in files, with the name of its copy; null if unexpected */
  const kiln_name_t *name;
  kiln_tensor_t *tensor; /* null if missing */
} kiln_difference_t;
/* The state of an iteration over the differences. */
typedef struct kiln_differences_t {
  const kiln_model_t *model;
  const kiln_tensors_t *table;
  uint32_t index, copy; /* of the next weight */
  size_t tensor;        /* the next candidate for an unexpected tensor */
  kiln_weight_t room;
  kiln_name_t name;
} kiln_differences_t;
void kiln_differences_begin(kiln_differences_t *walk, const kiln_model_t *model, const kiln_tensors_t *table);
/* Finds the next difference, whose name is stored in the walk. False: there is none, and all tensors of the model
 * are marked as used. Unexpected tensors come last. */
bool kiln_differences_next(kiln_differences_t *walk, kiln_difference_t *found);
/* Returns the unused tensor whose name is nearest to that of a weight, after a walk has marked the used ones; null:
 * none is near. */
const kiln_tensor_t *kiln_nearest(const kiln_tensors_t *table, const kiln_weight_t *weight, const kiln_name_t *name);
/* Checks that there is no difference; else returns the status of the first one, with a message that lists as many as
 * fit. */
kiln_status_t kiln_differences_check(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* Checks that every tensor of the table is used. */
kiln_status_t kiln_check_used(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_BIND_H */
