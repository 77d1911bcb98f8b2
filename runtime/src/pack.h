// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights as kernels read them. */
#ifndef KILN_PACK_H
#define KILN_PACK_H

#include "tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* placement.c */

/* Whether a weight of f32 is stored in fewer bits. */
static inline bool kiln_is_stored(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  return weight->dtype != placement->dtype;
}
/* Whether calls may change the weight: a variable that lies as it is. */
bool kiln_weight_changes(const kiln_model_t *model, uint32_t index);
/* Elements of one copy of a weight, dense and of its type; written: of one that changes. */
kiln_status_t kiln_read_elements(const kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
kiln_status_t kiln_write_elements(kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first, uint64_t count,
                                  const void *values, kiln_error_t *error);
/* Bytes from a placement's offset to the end of what a copy of the weight covers, with scales; 0 if the placement makes
 * no sense. */
uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement);
/* The elements beside each of a dimension; all of them for one that the weight lacks. */
uint64_t kiln_elements_beside(const kiln_weight_t *weight, uint32_t dim);
/* How many elements of the depth lie together. */
uint64_t kiln_word_of(const kiln_placement_t *placement);
/* Where an element lies, in elements from the placement's offset for its copy: of a weight as a matrix, whose columns
 * are all dimensions but the first. */
uint64_t kiln_pack_place(const kiln_placement_t *placement, uint64_t rows, uint64_t columns, uint64_t row,
                         uint64_t column);

/* pack.c */

/* Stores one copy's elements, which are of the type `dtype` in data, at their place. packed points at the placement's
 * offset for that copy. False: an element cannot be stored as the placement's type (kiln_quantize_find says which), and
 * what was written is of no use. */
bool kiln_pack_weight(char *packed, const char *data, uint32_t dtype, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);
/* The same of a tensor. Pages of its source are given back to the system as they are read. */
bool kiln_pack_tensor(char *packed, const kiln_tensor_t *tensor, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);

/* A mapped file that is read. */
typedef struct kiln_reader_t {
  const kiln_file_t *file;
  const char *kept; /* where pages begin that are not given back yet */
} kiln_reader_t;
/* Where a weight goes: if it is tiled, element (n along the dimension `dim`, k along the other) of `depth`. */
typedef struct kiln_tiling_t {
  char *packed;
  size_t tile, dim, shift, depth, bytes;
  uint32_t dtype;
  float *scales;         /* of n = 0; null: none */
  size_t word;           /* elements of the depth that lie together */
  int32_t *sums;         /* of words of four, of n = 0: 128 times the sum of the elements; null: none */
  kiln_reader_t *reader; /* null: data are no file's */
} kiln_tiling_t;
/* What lies before `end` was read: pages are given back, if there are enough of them. */
void kiln_pack_pass(const kiln_tiling_t *tiling, const char *end);
/* Stores a weight as a matrix, past the caches; one that is dense is a row. */
void kiln_pack_matrix(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns);

/* pack_groups.c */

/* kiln_pack_weight of int4; rows, columns: of the weight as a matrix. */
bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns);
/* Whether the placement can hold a tensor of int4 as it is. */
bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor);
/* Bytes from the placement's offset to the end of int4, of so many outputs in whole tiles; 0 if it makes no sense. */
uint64_t kiln_pack_groups_bytes(const kiln_placement_t *placement, uint64_t outputs, uint64_t depth);
/* The number that element k of the depth of output n stands for. */
float kiln_pack_groups_value(const char *packed, const kiln_placement_t *placement, uint64_t depth, uint64_t n,
                             uint64_t k);

#ifdef __cplusplus
}
#endif
#endif /* KILN_PACK_H */
