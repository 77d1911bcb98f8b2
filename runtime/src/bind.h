// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights taken from the files of a checkpoint. */
#ifndef KILN_BIND_H
#define KILN_BIND_H

#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* source.c */

/* Opens a file for its tensors, which kiln_file_unmap closes: maps it, or copies it for a model that is to copy files.
 */
kiln_status_t kiln_source_open(const kiln_model_t *model, const char *path, kiln_file_t *file, kiln_error_t *error);
/* A copy takes the place of the map, and the file is closed; whatever fails, the file is unmapped. */
kiln_status_t kiln_file_own(kiln_file_t *file, const kiln_allocator_t *allocator, kiln_error_t *error);
/* That no file has been cut whose tensors these are, before they are read. */
kiln_status_t kiln_source_check(const kiln_tensors_t *table, kiln_error_t *error);
/* What files are read. */
typedef enum kiln_kind_t {
  KILN_KIND_SAFETENSORS = 1,
  KILN_KIND_INDEX = 2,
  KILN_KIND_GGUF = 3,
  KILN_KIND_PACKED = 4
} kiln_kind_t;
/* As many bytes as are looked at. */
enum { KILN_KIND_BYTES = 64 };
/* For a file that does not begin as one of the expected kind: KILN_FILE_MALFORMED with words for what it is by its
 * first bytes; KILN_OK if these do not say. */
kiln_status_t kiln_kind_check(const void *begin, size_t bytes, kiln_kind_t expected, kiln_error_t *error);

/* index.c */

/* What is done with the tensors of a checkpoint, which live until it returns. */
typedef kiln_status_t (*kiln_take_t)(kiln_model_t *model, kiln_tensors_t *table, const void *context,
                                     kiln_error_t *error);
/* kiln_checkpoint_take for a path of an index. */
kiln_status_t kiln_index_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                              kiln_error_t *error);

/* bind.c */

/* Whether a path is that of an index of several files. */
bool kiln_is_index(const char *path);
/* Maps a safetensors file, or the files of an index, hands their tensors to `take`, and unmaps them. */
kiln_status_t kiln_checkpoint_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                                   kiln_error_t *error);

/* The name in one piece, for a message. */
const char *kiln_name_text(const kiln_name_t *name, char text[KILN_NAME_SHOWN + 1]);
bool kiln_weight_has_shape(const kiln_weight_t *weight, const kiln_tensor_t *tensor);
/* Marks the tensor of a copy of a weight as used, and checks it; null: the file has none. */
kiln_status_t kiln_check_weight(const kiln_weight_t *weight, const kiln_name_t *name, kiln_tensor_t *tensor,
                                kiln_error_t *error);
/* A copy of a weight that is bound. */
typedef struct kiln_packing_t {
  const kiln_weight_t *weight;
  const kiln_placement_t *placement;
  const kiln_name_t *name;
  char *packed;              /* the placement's offset for that copy, zeros */
  const kiln_shard_t *shard; /* of a slice: which one it is; else null, or without sections */
  uint32_t rank;             /* whose */
} kiln_packing_t;
/* Packs a tensor that was checked. */
kiln_status_t kiln_take_tensor(const kiln_packing_t *packing, const kiln_tensor_t *tensor, kiln_error_t *error);
/* The memory in which what follows from weights is computed; null if nothing does. */
kiln_status_t kiln_derive_prepare(const kiln_model_t *model, void **arena, kiln_error_t *error);
/* Computes what follows from the weights that are bound, unless that failed, and releases the memory; the status of
 * both. If computing fails, no weights are bound. */
kiln_status_t kiln_derive(kiln_model_t *model, void *arena, kiln_status_t status, kiln_error_t *error);
/* Checks all tensors against the model's weights, but those that are used already, and packs them. */
kiln_status_t kiln_bind_tensors(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* Bytes of one copy in a weight file. */
uint64_t kiln_weight_bytes(const kiln_weight_t *weight);
/* A training's step and seed in a weight file, as kiln_training_t has them. */
enum { KILN_TRAINING_NUMBERS = 2 };
extern const kiln_weight_t kiln_training_numbers[KILN_TRAINING_NUMBERS];
/* The weight's name for one copy: "{}" becomes the copy's number. */
void kiln_weight_name(const kiln_weight_t *weight, uint32_t copy, kiln_name_t *name);

/* differences.c */

typedef enum kiln_difference_kind_t {
  KILN_DIFFERS_MISSING = 0,
  KILN_DIFFERS_SHAPE = 1,
  KILN_DIFFERS_TYPE = 2,
  KILN_DIFFERS_UNEXPECTED = 3
} kiln_difference_kind_t;
enum { KILN_DIFFERENCE_KINDS = 4 };
/* One between a model and a file. */
typedef struct kiln_difference_t {
  kiln_difference_kind_t kind;
  const kiln_weight_t *weight; /* as files have it, and the name of its copy; null where it is unexpected */
  const kiln_name_t *name;
  kiln_tensor_t *tensor; /* null where it is missing */
} kiln_difference_t;
/* Where a walk through them is. */
typedef struct kiln_differences_t {
  const kiln_model_t *model;
  const kiln_tensors_t *table;
  uint32_t index, copy; /* of the next weight */
  size_t tensor;        /* the next one that may be unexpected */
  kiln_weight_t room;
  kiln_name_t name;
} kiln_differences_t;
void kiln_differences_begin(kiln_differences_t *walk, const kiln_model_t *model, const kiln_tensors_t *table);
/* The next one, whose name is the walk's; false: there is none, and all tensors that the model has are marked as used.
 * What is unexpected comes last. */
bool kiln_differences_next(kiln_differences_t *walk, kiln_difference_t *found);
/* Of the tensors that are not used, which are known after a walk, the one whose name is nearest to that of a weight;
 * null: none is near. */
const kiln_tensor_t *kiln_nearest(const kiln_tensors_t *table, const kiln_weight_t *weight, const kiln_name_t *name);
/* That there is none; else the status of the first one, and words for as many as there is room for. */
kiln_status_t kiln_differences_check(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* That the table has no tensor that is not used. */
kiln_status_t kiln_check_used(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_BIND_H */
