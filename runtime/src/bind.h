// SPDX-License-Identifier: Apache-2.0
/* Weights taken from the files of a checkpoint. */
#ifndef KILN_BIND_H
#define KILN_BIND_H

#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Marks the tensor of a copy of a weight as used, and checks it; null: the file has none. */
kiln_status_t kiln_check_weight(const kiln_weight_t *weight, const kiln_name_t *name, kiln_tensor_t *tensor,
                                kiln_error_t *error);
/* That the table has no tensor that is not used. */
kiln_status_t kiln_check_used(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* A copy of a weight that is bound. */
typedef struct kiln_packing_t {
  const kiln_weight_t *weight;
  const kiln_placement_t *placement;
  const kiln_name_t *name;
  char *packed;              /* the placement's offset for that copy, zeros; null: it is checked, and not packed yet */
  const kiln_shard_t *shard; /* of a slice: which one it is; else null, or without sections */
  uint32_t rank;             /* whose */
} kiln_packing_t;
/* Checks a tensor, or packs it. */
kiln_status_t kiln_take_tensor(const kiln_packing_t *packing, kiln_tensor_t *tensor, kiln_error_t *error);
/* Checks all tensors against the model's weights, but those that are used already, and packs them. */
kiln_status_t kiln_bind_tensors(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* Bytes of one copy in a weight file. */
uint64_t kiln_weight_bytes(const kiln_weight_t *weight);
/* A training's step and seed in a weight file, as kiln_training_t has them. */
enum { KILN_TRAINING_NUMBERS = 2 };
extern const kiln_weight_t kiln_training_numbers[KILN_TRAINING_NUMBERS];
/* The weight's name for one copy: "{}" becomes the copy's number. */
void kiln_weight_name(const kiln_weight_t *weight, uint32_t copy, kiln_name_t *name);

#ifdef __cplusplus
}
#endif
#endif /* KILN_BIND_H */
