// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Computes the location of a weight in the packed weights from its kiln_placement_t. */
#include "readers/files.h"
#include "weights/format.h"
#include "weights/pack.h"

uint64_t kiln_elements_except(const kiln_weight_t *weight, uint32_t dim) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < weight->rank; ++i)
    elements *= i == dim ? 1 : (uint64_t)weight->shape[i];
  return elements;
}

uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  const uint64_t tile = placement->tile;
  const uint32_t group = placement->group;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  const kiln_format_t *const format = kiln_format_of(placement, arrays);
  uint64_t outputs = placement->shift + kiln_elements_except(weight, weight->rank), k_extent = 1, end = 0;
  if (tile > 0) {
    /* Tiles along the first dimension or, for a matrix, the second. */
    if (weight->rank < 2 || placement->dim > 1 || (placement->dim == 1 && weight->rank != 2))
      return 0;
    outputs = ((uint64_t)weight->shape[placement->dim] + placement->shift + tile - 1) / tile * tile;
    k_extent = kiln_elements_except(weight, placement->dim);
  }
  if (!kiln_is_stored(weight, placement))
    return placement->scales ? 0 : kiln_safetensors_stored_bytes(placement->dtype, outputs * k_extent);
  if (weight->dtype != KILN_F32 || tile == 0 || format->element != placement->dtype ||
      !kiln_format_takes(format, group) || k_extent % kiln_format_whole(format, group) ||
      (placement->scales | placement->zeros | placement->offset | placement->stride) % sizeof(float))
    return 0;
  /* Kernels read the scales and sums of whole tiles. */
  for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i) {
    const uint64_t bytes = outputs * kiln_format_items(&arrays[i], k_extent) * arrays[i].bytes;
    if (bytes ? arrays[i].offset < end : arrays[i].offset > 0)
      return 0;
    end = bytes ? arrays[i].offset + bytes : end;
  }
  return end;
}
