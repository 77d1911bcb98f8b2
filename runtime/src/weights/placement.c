// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Computes the location of a weight in the packed weights from its kiln_placement_t. */
#include "weights/pack.h"

uint64_t kiln_elements_except(const kiln_weight_t *weight, uint32_t dim) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < weight->rank; ++i)
    elements *= i == dim ? 1 : (uint64_t)weight->shape[i];
  return elements;
}

uint64_t kiln_interleave_of(const kiln_placement_t *placement) {
  return placement->dtype == KILN_I8 && placement->group > 0 ? placement->group : 1;
}

/* Bytes of an int8 weight whose elements end at `end`; 0 if the placement is invalid. */
static uint64_t bytes_of_int8(const kiln_placement_t *placement, uint64_t end, uint64_t outputs) {
  const uint64_t scales = placement->scales, sums = placement->zeros, scales_end = scales + outputs * sizeof(float);
  const uint32_t factor = placement->group;
  if ((factor != 0 && factor != 2 && factor != 4) || (sums != 0) != (factor == 4) || scales < end ||
      (sums != 0 && sums < scales_end) || (scales | sums | placement->offset | placement->stride) % sizeof(float))
    return 0;
  return sums ? sums + outputs * sizeof(int32_t) : scales_end;
}

uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  const uint64_t tile = placement->tile, scales = placement->scales;
  uint64_t elements = placement->shift + kiln_elements_except(weight, weight->rank), outputs = 0;
  if (tile > 0) {
    /* Tiles along the first dimension or, for a matrix, the second. */
    if (weight->rank < 2 || placement->dim > 1 || (placement->dim == 1 && weight->rank != 2))
      return 0;
    outputs = ((uint64_t)weight->shape[placement->dim] + placement->shift + tile - 1) / tile * tile;
    const uint64_t factor = kiln_interleave_of(placement), k_extent = kiln_elements_except(weight, placement->dim);
    elements = outputs * ((k_extent + factor - 1) / factor * factor);
  }
  const uint64_t end = kiln_safetensors_stored_bytes(placement->dtype, elements);
  if (kiln_is_stored(weight, placement)) {
    if (weight->dtype != KILN_F32 || tile == 0)
      return 0;
    if (placement->dtype == KILN_I4)
      return kiln_pack_groups_bytes(placement, outputs, kiln_elements_except(weight, placement->dim));
    if (placement->dtype == KILN_I8) /* kernels read the scales and sums of whole tiles */
      return bytes_of_int8(placement, end, outputs);
    if (placement->dtype != KILN_F16 && placement->dtype != KILN_BF16)
      return 0;
  }
  return scales ? 0 : end;
}

uint64_t kiln_pack_place(const kiln_placement_t *placement, uint64_t rows, uint64_t columns, uint64_t row,
                         uint64_t column) {
  const bool is_first = placement->dim == 0;
  const uint64_t shift = placement->shift, tile = placement->tile, n = shift + (is_first ? row : column);
  const uint64_t k_extent = is_first ? columns : rows, k = is_first ? column : row,
                 factor = kiln_interleave_of(placement);
  if (tile == 0)
    return shift + row * columns + column;
  return ((n / tile * ((k_extent + factor - 1) / factor) + k / factor) * tile + n % tile) * factor + k % factor;
}
