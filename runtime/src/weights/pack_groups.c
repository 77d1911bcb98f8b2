// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stores a weight whose format has groups: the arrays of the format (kiln/formats.h), each tiled like a separate weight
 * with a smaller K. A tensor whose numbers are those of the format is stored unchanged, with groups or without. Only
 * libraries whose weights have groups, or are small floats, have this file; the others have pack_groups_none.c. */
#include "readers/files.h"
#include "weights/convert.h"
#include "weights/format.h"
#include "weights/pack.h"

#include <string.h>

/* The size of a converted piece: elements along K, which are whole groups or blocks, and outputs. */
enum { PIECE_K = 128, PIECE_OUTPUTS = KILN_GROUP_COLUMNS, PIECE_ELEMENTS = PIECE_K * PIECE_OUTPUTS };

/* The arrays of a piece. A scale has at most a byte for each number of the smallest group; the items of the third array
 * are those of groups, of blocks, or four bytes for each output. */
typedef struct piece_t {
  _Alignas(64) char numbers[PIECE_ELEMENTS];
  _Alignas(4) char scales[PIECE_ELEMENTS / KILN_LEAST_GROUP], thirds[PIECE_OUTPUTS * PIECE_K / KILN_LEAST_GROUP];
} piece_t;

/* Transposes so that outputs are along the columns, as quantisation requires. */
static void turn(float *to, const float *from, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
}

bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor) {
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  return placement->tile > 0 && placement->dim == 0 && tensor->form && tensor->form->has_groups &&
         tensor->form->has_groups(tensor, kiln_format_of(placement, arrays), placement->group);
}

/* Whether none of these numbers or scales of a type is infinite or NaN. */
static bool are_finite(const char *data, size_t count, uint32_t type) {
  bool is_finite = true;
  for (size_t i = 0; i < count && (type == KILN_F16 || type == KILN_F8E4M3); ++i)
    is_finite &= type == KILN_F16 ? (data[2 * i + 1] & 0x7C) != 0x7C : (data[i] & 0x7F) != 0x7F;
  return is_finite;
}

/* Whether the arrays of a piece, which a reader returned, are those of finite numbers. */
static bool is_piece_finite(const kiln_format_t *format, const kiln_format_array_t arrays[KILN_FORMAT_ARRAYS],
                            const char *const data[KILN_FORMAT_ARRAYS], size_t k_extent, size_t outputs) {
  const size_t pair = format->has_minimums ? 2 : 1;
  return are_finite(data[0], k_extent * outputs, format->element) &&
         are_finite(data[1], (size_t)kiln_format_items(&arrays[1], k_extent) * outputs, format->scale) &&
         are_finite(data[2], (size_t)kiln_format_items(&arrays[2], k_extent) * outputs * pair, format->outer);
}

/* Writes the outer scales of outputs, of which there are `outputs` from `first` on, to the packed copy. */
static bool make_outer_scales(float *scales, const kiln_format_t *format, const kiln_tensor_t *tensor, size_t rows,
                              size_t columns, bool by_row) {
  const size_t outputs = by_row ? rows : columns;
  const float most_scale = 448; /* of e4m3 */
  memset(scales, 0, outputs * sizeof *scales);
  kiln_quantize_raise(scales, tensor, 0, rows, columns, by_row);
  return kiln_quantize_scales(scales, outputs, format, format->divisor * most_scale);
}

/* Quantises a piece [k_extent][outputs]. */
static bool quantize(const kiln_format_t *format, char *const data[KILN_FORMAT_ARRAYS], const float *from,
                     size_t k_extent, size_t outputs, size_t group) {
  uint32_t *const words = (uint32_t *)(void *)data[0];
  if (kiln_format_has_blocks(format))
    return kiln_quantize_blocks(format, data, from, k_extent, outputs);
  return (format->element == KILN_I4 ? kiln_quantize_groups : kiln_quantize_to_f4)(
      words, data[1], format->has_zeros ? (signed char *)data[2] : NULL, from, k_extent, outputs, group);
}

/* Stores the arrays of a piece whose first element along K is `first`. */
static void store_piece(const kiln_tiling_t *tiling, const kiln_format_array_t arrays[KILN_FORMAT_ARRAYS],
                        const char *const data[KILN_FORMAT_ARRAYS], size_t first, size_t k_extent, size_t outputs) {
  for (int i = 0; i < KILN_FORMAT_ARRAYS && arrays[i].bytes; ++i) {
    const size_t bytes = arrays[i].bytes, before = arrays[i].each ? first / arrays[i].each * arrays[i].per : 0;
    kiln_tiling_t part = *tiling;
    if (!arrays[i].each && first > 0)
      continue; /* an item for all of K */
    part.packed += arrays[i].offset + before * part.tile * bytes;
    part.dim = 1;
    part.k_extent = (size_t)kiln_format_items(&arrays[i], tiling->k_extent);
    part.bytes = bytes;
    part.reader = NULL;
    kiln_pack_matrix(&part, data[i], (size_t)kiln_format_items(&arrays[i], k_extent), outputs);
  }
}

bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns) {
  _Alignas(64) float piece[PIECE_ELEMENTS], turned[PIECE_ELEMENTS];
  piece_t made;
  char *const data[KILN_FORMAT_ARRAYS] = {made.numbers, made.scales, made.thirds};
  const bool by_row = tiling->dim == 0, is_held = kiln_pack_groups_fit(placement, tensor);
  const size_t group = placement->group;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  const kiln_format_t *const format = kiln_format_of(placement, arrays);
  const size_t piece_k = format->block > PIECE_K ? format->block : PIECE_K, piece_outputs = PIECE_ELEMENTS / piece_k;
  const size_t height = by_row ? piece_outputs : piece_k, width = by_row ? piece_k : piece_outputs;
  float *outers = NULL; /* those of whole outputs, which the pieces need */
  if (format->outer_bits && !format->block && !is_held) {
    outers = (float *)(void *)(tiling->packed + arrays[2].offset) + tiling->shift;
    if (!make_outer_scales(outers, format, tensor, rows, columns, by_row))
      return false;
  }
  for (size_t row = 0; row < rows; row += height) {
    for (size_t column = 0; column < columns; column += width) {
      const size_t high = rows - row < height ? rows - row : height,
                   wide = columns - column < width ? columns - column : width;
      const size_t k_extent = by_row ? wide : high, outputs = by_row ? high : wide, first = by_row ? column : row;
      if (is_held) {
        tensor->form->read_groups(tensor, &(kiln_part_t){row, high, column, wide, group}, data);
        if (!is_piece_finite(format, arrays, (const char *const *)data, k_extent, outputs))
          return false;
      } else {
        for (size_t i = 0; i < high; ++i)
          kiln_convert_read(tensor, piece + i * wide, (row + i) * columns + column, wide);
        if (by_row)
          turn(turned, piece, high, wide);
        if (outers)
          memcpy(data[2], outers + (by_row ? row : column), outputs * sizeof *outers);
        if (!quantize(format, data, by_row ? turned : piece, k_extent, outputs, group))
          return false;
      }
      kiln_tiling_t at = *tiling;
      at.shift += by_row ? row : column;
      store_piece(&at, arrays, (const char *const *)data, first, k_extent, outputs);
    }
    if (tiling->reader && rows - row > height)
      kiln_pack_pass(tiling, tensor->data + kiln_safetensors_stored_bytes(tensor->dtype, (row + height) * columns));
  }
  return true;
}
