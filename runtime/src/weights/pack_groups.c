// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stores a weight that is quantised in groups: words of eight elements along K, scales and zeros, each tiled like a
 * separate weight with a smaller K. A tensor that is already int4 in this format is stored unchanged. */
#include "readers/files.h"
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/pack.h"

#include <string.h>

/* The size of a converted piece: elements along K, which are whole groups, and outputs. */
enum { PIECE_K = 128, PIECE_OUTPUTS = KILN_GROUP_COLUMNS };

/* Transposes so that outputs are along the columns, as quantisation requires. */
static void turn(float *to, const float *from, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
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
  char scales[PIECE_K / KILN_LEAST_GROUP * PIECE_OUTPUTS * 2];
  signed char zeros[PIECE_K / KILN_LEAST_GROUP * PIECE_OUTPUTS];
  const bool by_row = tiling->dim == 0, is_held = kiln_pack_groups_fit(placement, tensor);
  const size_t group = placement->group;
  const void *const data[KILN_FORMAT_ARRAYS] = {words, scales, zeros};
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  (void)kiln_format_of(placement, arrays);
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
        if (!(placement->dtype == KILN_I4 ? kiln_quantize_groups : kiln_quantize_to_f4)(
                words, scales, placement->zeros ? zeros : NULL, by_row ? turned : piece, k_extent, outputs, group))
          return false;
      }
      for (int i = 0; i < KILN_FORMAT_ARRAYS && arrays[i].bytes; ++i) {
        const size_t each = arrays[i].each, bytes = arrays[i].bytes;
        kiln_tiling_t part = *tiling;
        part.packed += arrays[i].offset + first / each * part.tile * bytes;
        part.dim = 1;
        part.shift += by_row ? row : column;
        part.k_extent /= each;
        part.bytes = bytes;
        part.reader = NULL;
        kiln_pack_matrix(&part, data[i], k_extent / each, outputs);
      }
    }
    if (tiling->reader && rows - row > height)
      kiln_pack_pass(tiling, tensor->data + kiln_safetensors_stored_bytes(tensor->dtype, (row + height) * columns));
  }
  return true;
}
