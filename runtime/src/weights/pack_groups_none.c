// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stands for pack_groups.c in a library whose weights have no groups, and whose numbers are therefore quantised. */
#include "weights/pack.h"

bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor) {
  (void)placement, (void)tensor;
  return false;
}

bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns) {
  (void)tiling, (void)placement, (void)tensor, (void)rows, (void)columns;
  return false;
}
