// SPDX-License-Identifier: Apache-2.0
/* Where a weight lies in the packed copy, as its kiln_placement_t says. */
#include "internal.h"

uint64_t kiln_elements_beside(const kiln_weight_t *weight, uint32_t dim) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < weight->rank; ++i)
    elements *= i == dim ? 1 : (uint64_t)weight->shape[i];
  return elements;
}

uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  const uint64_t tile = placement->tile, scales = placement->scales;
  uint64_t elements = placement->shift + kiln_elements_beside(weight, weight->rank), outputs = 0;
  if (tile > 0) {
    /* Tiles along the first dimension or, of a matrix, the second. */
    if (weight->rank < 2 || placement->dim > 1 || (placement->dim == 1 && weight->rank != 2))
      return 0;
    outputs = ((uint64_t)weight->shape[placement->dim] + placement->shift + tile - 1) / tile * tile;
    elements = outputs * kiln_elements_beside(weight, placement->dim);
  }
  const uint64_t end = kiln_safetensors_stored_bytes(placement->dtype, elements);
  if (kiln_is_stored(weight, placement)) {
    if (weight->dtype != KILN_F32 || tile == 0)
      return 0;
    if (placement->dtype == KILN_I4)
      return kiln_pack_groups_bytes(placement, outputs, kiln_elements_beside(weight, placement->dim));
    if (placement->dtype == KILN_I8) /* kernels read the scales of whole tiles */
      return scales < end || (scales | placement->offset | placement->stride) % sizeof(float)
                 ? 0
                 : scales + outputs * sizeof(float);
    if (placement->dtype != KILN_F16 && placement->dtype != KILN_BF16)
      return 0;
  }
  return scales ? 0 : end;
}

uint64_t kiln_pack_place(const kiln_placement_t *placement, uint64_t rows, uint64_t columns, uint64_t row,
                         uint64_t column) {
  const bool is_first = placement->dim == 0;
  const uint64_t shift = placement->shift, tile = placement->tile, n = shift + (is_first ? row : column);
  if (tile == 0)
    return shift + row * columns + column;
  return (n / tile * (is_first ? columns : rows) + (is_first ? column : row)) * tile + n % tile;
}
