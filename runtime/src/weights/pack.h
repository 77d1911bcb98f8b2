// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Packing of weights into the layout of the kernels. */
#ifndef KILN_PACK_H
#define KILN_PACK_H

#include "core/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* placement.c */

/* Whether an f32 weight is quantised. */
static inline bool kiln_is_stored(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  return weight->dtype != placement->dtype;
}
/* Whether calls may change the weight: it is a variable that is stored unpacked. */
bool kiln_weight_changes(const kiln_model_t *model, uint32_t index);
/* Read elements of one copy of a weight, dense and in its type; write those of a weight that may change. */
kiln_status_t kiln_read_elements(const kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
kiln_status_t kiln_write_elements(kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first, uint64_t count,
                                  const void *values, kiln_error_t *error);
/* Returns the bytes from a placement's offset to the end of a copy of the weight, with scales; 0 if the placement is
 * invalid. */
uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement);
/* Returns the number of elements per index of a dimension; all elements for a dimension that the weight lacks. */
uint64_t kiln_elements_except(const kiln_weight_t *weight, uint32_t dim);

/* pack.c */

/* Packs the elements of one copy, which have type `dtype` in data. packed points at the placement's offset for that
 * copy. False: an element cannot be represented in the placement's type (kiln_quantize_find finds it), and the
 * output is undefined. */
bool kiln_pack_weight(char *packed, const char *data, uint32_t dtype, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);
/* Like kiln_pack_weight, for a tensor. Pages of its source are released as they are read. */
bool kiln_pack_tensor(char *packed, const kiln_tensor_t *tensor, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);

/* A mapped file that is being read. */
typedef struct kiln_reader_t {
  const kiln_file_t *file;
  const char *kept; /* start of the pages that are not released yet */
} kiln_reader_t;
/* The destination of a weight. If it is tiled: element n along the dimension `dim`, k along the other, of size
 * `k_extent`. */
typedef struct kiln_tiling_t {
  char *packed;
  size_t tile, dim, shift, k_extent, bytes;
  uint32_t dtype;
  float *scales;         /* of n = 0; null: none */
  size_t factor;         /* elements along K that are interleaved */
  int32_t *sums;         /* interleaved by four, of n = 0: 128 times the sum of the elements; null: none */
  kiln_reader_t *reader; /* null: the data are not in a file */
} kiln_tiling_t;
/* Notes that the data before `end` were read: releases their pages once there are enough of them. */
void kiln_pack_pass(const kiln_tiling_t *tiling, const char *end);
/* Stores a weight as a matrix with non-temporal stores; a dense one is a single row. */
void kiln_pack_matrix(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns);

/* pack_groups.c; pack_groups_none.c takes its place in libraries without groups. */

/* kiln_pack_weight for formats with groups, and for tensors that are stored unchanged; rows, columns: those of the
 * weight as a matrix. */
bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns);
/* Whether the placement can store the numbers and scales of a tensor unchanged. */
bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor);

#ifdef __cplusplus
}
#endif
#endif /* KILN_PACK_H */
