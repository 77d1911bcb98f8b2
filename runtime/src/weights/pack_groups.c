// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stores a weight as group-wise int4: words of eight elements along K, scales and zeros, each tiled like a separate
 * weight with a smaller K. A tensor that is already int4 in this format is stored unchanged. */
#include "weights/convert.h"
#include "weights/pack.h"

#include <string.h>

/* The size of a converted piece: elements along K, which are whole groups, and outputs. */
enum { PIECE_K = 128, PIECE_OUTPUTS = KILN_GROUP_COLUMNS, LEAST_GROUP = 32 };

/* Transposes so that outputs are along the columns, as quantisation requires. */
static void turn(float *to, const float *from, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
}

/* Packs a component of the weight: one item of `bytes` for `each` elements along K, at `offset` from the weight's
 * start. */
static void pack_part(const kiln_tiling_t *tiling, uint64_t offset, size_t each, size_t bytes, size_t k_first,
                      const void *data, size_t k_extent, size_t outputs) {
  kiln_tiling_t part = *tiling;
  part.dim = 1;
  part.bytes = bytes;
  part.k_extent = tiling->k_extent / each;
  part.packed += offset + k_first / each * tiling->tile * bytes;
  kiln_pack_matrix(&part, data, k_extent / each, outputs);
}

bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor) {
  return placement->dtype == KILN_I4 && placement->dim == 0 && tensor->form && tensor->form->has_groups &&
         tensor->form->has_groups(tensor, placement->group, placement->zeros == 0);
}

/* Whether none of these f16 is infinite or NaN. */
static bool are_finite(const char *scales, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if ((scales[2 * i + 1] & 0x7C) == 0x7C)
      return false;
  return true;
}

bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns) {
  _Alignas(64) float piece[PIECE_K * PIECE_OUTPUTS], turned[PIECE_K * PIECE_OUTPUTS];
  uint32_t words[PIECE_K / KILN_WORD_ELEMENTS * PIECE_OUTPUTS];
  char scales[PIECE_K / LEAST_GROUP * PIECE_OUTPUTS * 2];
  signed char zeros[PIECE_K / LEAST_GROUP * PIECE_OUTPUTS];
  const bool by_row = tiling->dim == 0, is_held = kiln_pack_groups_fit(placement, tensor);
  const size_t group = placement->group;
  const size_t height = by_row ? PIECE_OUTPUTS : PIECE_K, width = by_row ? PIECE_K : PIECE_OUTPUTS;
  for (size_t row = 0; row < rows; row += height) {
    for (size_t column = 0; column < columns; column += width) {
      const size_t high = rows - row < height ? rows - row : height,
                   wide = columns - column < width ? columns - column : width;
      const size_t k_extent = by_row ? wide : high, outputs = by_row ? high : wide, first = by_row ? column : row;
      if (is_held) {
        tensor->form->read_groups(tensor, &(kiln_part_t){row, high, column, wide, group}, words, scales, zeros);
        if (!are_finite(scales, k_extent / group * outputs))
          return false;
      } else {
        for (size_t i = 0; i < high; ++i)
          kiln_convert_read(tensor, piece + i * wide, (row + i) * columns + column, wide);
        if (by_row)
          turn(turned, piece, high, wide);
        if (!kiln_quantize_groups(words, scales, placement->zeros ? zeros : NULL, by_row ? turned : piece, k_extent,
                                  outputs, group))
          return false;
      }
      kiln_tiling_t at = *tiling;
      at.reader = NULL;
      at.shift += by_row ? row : column;
      pack_part(&at, 0, KILN_WORD_ELEMENTS, sizeof *words, first, words, k_extent, outputs);
      pack_part(&at, placement->scales, group, 2, first, scales, k_extent, outputs);
      if (placement->zeros)
        pack_part(&at, placement->zeros, group, 1, first, zeros, k_extent, outputs);
    }
    if (tiling->reader && rows - row > height)
      kiln_pack_pass(tiling, tensor->data + kiln_safetensors_stored_bytes(tensor->dtype, (row + height) * columns));
  }
  return true;
}

uint64_t kiln_pack_groups_bytes(const kiln_placement_t *placement, uint64_t outputs, uint64_t k_extent) {
  const uint64_t group = placement->group, scales = placement->scales, zeros = placement->zeros;
  if ((group != 32 && group != 64 && group != 128) || k_extent % group ||
      (scales | zeros | placement->offset | placement->stride) % sizeof(uint32_t))
    return 0;
  const uint64_t groups = outputs * (k_extent / group), scales_end = scales + groups * 2;
  if (scales < outputs * k_extent / 2 || (zeros && zeros < scales_end))
    return 0;
  return zeros ? zeros + groups : scales_end;
}

float kiln_pack_groups_value(const char *packed, const kiln_placement_t *placement, uint64_t k_extent, uint64_t n,
                             uint64_t k) {
  const uint64_t tile = placement->tile, at = placement->shift + n, group = placement->group;
  const uint64_t in_group = (at / tile * (k_extent / group) + k / group) * tile + at % tile;
  uint32_t word;
  float scale;
  memcpy(&word,
         packed + ((at / tile * (k_extent / KILN_WORD_ELEMENTS) + k / KILN_WORD_ELEMENTS) * tile + at % tile) * 4,
         sizeof word);
  kiln_convert_widen(&scale, packed + placement->scales + in_group * 2, 1, KILN_F16);
  const int32_t element = (int32_t)(word >> kiln_bit_in_word(k) & 15), whole = element < 8 ? element : element - 16;
  const int32_t zero = placement->zeros ? *(const signed char *)(packed + placement->zeros + in_group) : 0;
  return (float)(whole - zero) * scale;
}
