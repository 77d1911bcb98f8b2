// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stores a weight in the layout that its kernels read, at memory bandwidth. kiln_placement_t in model.h defines the
 * layouts. Two techniques make it fast: the packed weights are written with non-temporal stores, since they are not
 * read soon and a cache would fetch each line before it is overwritten; and where a layout transposes, whole lines
 * are read and transposed in blocks on the stack. */
#include "weights/pack.h"
#include "readers/files.h"
#include "weights/convert.h"
#include "weights/format.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* A transposed block: one cache line of f32 from each row of a tile, or of a part of a tile. */
enum { BLOCK_COLUMNS = 16, BLOCK_ROWS = 128 };
/* Runs of rows are stored at least three lines at a time. */
enum { RUN_BYTES = 192 };
/* The size of a converted piece: one cache line of f16 from each row. */
enum { PIECE_COLUMNS = 32, PIECE_ROWS = BLOCK_ROWS };
/* Pages of a mapped file are released in chunks of this size. */
enum { READ_BYTES = 1 << 20 };

/* memcpy with non-temporal stores, which do not read a line before they overwrite it: twice memcpy's rate (M-0929). */
static inline void stream(char *to, const char *from, size_t bytes) {
#if defined(__SSE2__)
  size_t head = -(uintptr_t)to % sizeof(__m128i);
  if (bytes >= head + sizeof(__m128i)) {
    memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= sizeof(__m128i);
         to += sizeof(__m128i), from += sizeof(__m128i), bytes -= sizeof(__m128i))
      _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128((const __m128i *)(const void *)from));
  }
#endif
  memcpy(to, from, bytes);
}

/* Must be called after stream() before another thread reads the data. */
static inline void finish_stream(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#if defined(__SSE2__)
/* Transposes four rows and columns of 4-byte elements: to[column * rows + row] = from[row * columns + column]. */
static inline void transpose_four(char *to, size_t rows, const char *from, size_t columns) {
  __m128i in[4], low[2], high[2];
  for (int i = 0; i < 4; ++i)
    in[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + (size_t)i * columns * 4));
  for (int i = 0; i < 2; ++i) {
    low[i] = _mm_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
    high[i] = _mm_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
  }
  const __m128i out[4] = {_mm_unpacklo_epi64(low[0], low[1]), _mm_unpackhi_epi64(low[0], low[1]),
                          _mm_unpacklo_epi64(high[0], high[1]), _mm_unpackhi_epi64(high[0], high[1])};
  for (int i = 0; i < 4; ++i)
    _mm_storeu_si128((__m128i *)(void *)(to + (size_t)i * rows * 4), out[i]);
}
#endif

/* block[column * rows + row] = from[row * columns + column] for `count` columns. Inlined for each element size. */
static inline __attribute__((always_inline)) void transpose_block(char *block, const char *from, size_t rows,
                                                                  size_t columns, size_t count, const size_t bytes) {
  size_t row = 0;
#if defined(__SSE2__)
  for (; bytes == 4 && row + 4 <= rows; row += 4) {
    const char *source = from + row * columns * bytes;
    size_t column = 0;
    for (; column + 4 <= count; column += 4)
      transpose_four(block + (column * rows + row) * bytes, rows, source + column * bytes, columns);
    for (; column < count; ++column)
      for (size_t i = 0; i < 4; ++i)
        memcpy(block + (column * rows + row + i) * bytes, source + (i * columns + column) * bytes, bytes);
  }
#endif
  for (; row < rows; ++row)
    for (size_t column = 0; column < count; ++column)
      memcpy(block + (column * rows + row) * bytes, from + (row * columns + column) * bytes, bytes);
}

/* Like transpose_block, for 4-byte elements. */
static void transpose_words(char *block, const char *from, size_t rows, size_t columns, size_t count) {
  transpose_block(block, from, rows, columns, count, 4);
}

/* to[column * tile + row] = from[row * columns + column]; at most BLOCK_ROWS rows. */
static inline __attribute__((always_inline)) void transpose(char *to, const char *from, size_t rows, size_t columns,
                                                            size_t tile, const size_t bytes) {
  _Alignas(64) char block[BLOCK_COLUMNS * BLOCK_ROWS * 4];
  /* Blocks start at cache lines, if all rows have the same alignment. */
  size_t count = BLOCK_COLUMNS - (uintptr_t)from / bytes % BLOCK_COLUMNS;
  for (size_t first = 0; first < columns; first += count, count = BLOCK_COLUMNS) {
    if (count > columns - first)
      count = columns - first;
    /* The access pattern across many rows defeats the hardware prefetcher. */
    if (columns - first > 2 * BLOCK_COLUMNS)
      for (size_t row = 0; row < rows; ++row)
        __builtin_prefetch(from + (row * columns + first + BLOCK_COLUMNS) * bytes);
    if (bytes == 4)
      transpose_words(block, from + first * bytes, rows, columns, count);
    else
      transpose_block(block, from + first * bytes, rows, columns, count, bytes);
    if (rows == tile)
      stream(to + first * tile * bytes, block, count * tile * bytes);
    else
      for (size_t column = 0; column < count; ++column)
        stream(to + (first + column) * tile * bytes, block + column * rows * bytes, rows * bytes);
  }
}

void kiln_pack_pass(const kiln_tiling_t *tiling, const char *end) {
  kiln_reader_t *const reader = tiling->reader;
  if (reader && end - reader->kept >= READ_BYTES) {
    kiln_file_give_back(reader->file, reader->kept, end);
    reader->kept = end;
  }
}

/* Returns how many elements from n on are in one tile, and the address of the first. */
static size_t run_of(const kiln_tiling_t *tiling, size_t n, size_t extent, char **to) {
  size_t within = (n + tiling->shift) % tiling->tile, left = tiling->tile - within;
  *to = tiling->packed + ((n + tiling->shift - within) * tiling->k_extent + within) * tiling->bytes;
  return extent - n < left ? extent - n : left;
}

/* The tiled dimension is the first: a row of the weight is a column of a tile. */
static void pack_rows(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns) {
  for (size_t n = 0, run; n < rows; n += run) {
    char *to;
    run = run_of(tiling, n, rows, &to);
    if (run > BLOCK_ROWS)
      run = BLOCK_ROWS;
    const char *from = data + n * columns * tiling->bytes;
    switch (tiling->bytes) {
    case 1:
      transpose(to, from, run, columns, tiling->tile, 1);
      break;
    case 2:
      transpose(to, from, run, columns, tiling->tile, 2);
      break;
    default:
      transpose(to, from, run, columns, tiling->tile, 4);
    }
    kiln_pack_pass(tiling, from + run * columns * tiling->bytes);
  }
}

/* The tiled dimension is the second: a row of the weight is a row of each tile. */
static void pack_columns(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns) {
  size_t row_bytes = tiling->tile * tiling->bytes, together = (RUN_BYTES + row_bytes - 1) / row_bytes;
  for (size_t first = 0; first < rows; first += together) {
    for (size_t n = 0, run; n < columns; n += run) {
      char *to;
      run = run_of(tiling, n, columns, &to);
      for (size_t k = first; k < first + together && k < rows; ++k)
        stream(to + k * row_bytes, data + (k * columns + n) * tiling->bytes, run * tiling->bytes);
    }
    if (rows - first > together)
      kiln_pack_pass(tiling, data + (first + together) * columns * tiling->bytes);
  }
}

static void pack_dense(const kiln_tiling_t *tiling, const char *data, size_t bytes) {
  char *to = tiling->packed + tiling->shift * tiling->bytes;
  for (size_t step; bytes > 0; data += step, to += step, bytes -= step) {
    step = bytes < READ_BYTES ? bytes : READ_BYTES;
    stream(to, data, step);
    kiln_pack_pass(tiling, data + step);
  }
}

void kiln_pack_matrix(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns) {
  if (tiling->tile == 0)
    pack_dense(tiling, data, columns * tiling->bytes);
  else
    (tiling->dim == 0 ? pack_rows : pack_columns)(tiling, data, rows, columns);
}

/* Notes that the tensor's first `elements` elements were read. */
static void pass_elements(const kiln_tiling_t *tiling, const kiln_tensor_t *tensor, uint64_t elements) {
  if (tiling->reader)
    kiln_pack_pass(tiling, tensor->data + kiln_safetensors_stored_bytes(tensor->dtype, elements));
}

/* Converts the largest magnitudes of outputs to their scales. */
static bool make_scales(const kiln_tiling_t *tiling, float *most, size_t count) {
  const kiln_format_t *const format = kiln_format_find(tiling->dtype, 0, false);
  return kiln_quantize_scales(most, count, format, format->divisor);
}

/* Computes the scales of the columns, for which it reads the whole matrix. */
static bool make_column_scales(const kiln_tiling_t *tiling, const kiln_tensor_t *tensor, size_t rows, size_t columns) {
  memset(tiling->scales, 0, columns * sizeof *tiling->scales);
  for (size_t row = 0; row < rows; ++row) {
    kiln_quantize_raise(tiling->scales, tensor, row * columns, 1, columns, false);
    pass_elements(tiling, tensor, (row + 1) * columns);
  }
  if (tiling->reader)
    tiling->reader->kept = tensor->data; /* it is read a second time */
  return make_scales(tiling, tiling->scales, columns);
}

/* Interleaves `factor` rows (VNNI layout), zero-padded. Inlined for each interleaving factor. */
static inline __attribute__((always_inline)) void interleave(char *words, const signed char *numbers, size_t rows,
                                                             size_t columns, const size_t factor) {
  for (size_t row = 0; row < rows; row += factor, words += columns * factor)
    for (size_t column = 0; column < columns; ++column)
      for (size_t i = 0; i < factor; ++i)
        words[column * factor + i] = (char)(row + i < rows ? numbers[(row + i) * columns + column] : 0);
}

/* Packs int8 values, outputs along the columns; `first`: the first output. `words` is a large enough buffer. */
static void pack_numbers(kiln_tiling_t part, const signed char *numbers, char *words, size_t k_extent, size_t outputs,
                         size_t first) {
  if (part.factor == 1) {
    kiln_pack_matrix(&part, (const char *)numbers, k_extent, outputs);
    return;
  }
  if (part.factor == 2)
    interleave(words, numbers, k_extent, outputs, 2);
  else
    interleave(words, numbers, k_extent, outputs, 4);
  for (size_t k = 0; part.sums && k < k_extent; ++k)
    for (size_t n = 0; n < outputs; ++n)
      part.sums[first + n] += 128 * numbers[k * outputs + n];
  part.bytes = part.factor;
  part.k_extent = (part.k_extent + part.factor - 1) / part.factor;
  kiln_pack_matrix(&part, words, (k_extent + part.factor - 1) / part.factor, outputs);
}

/* Packs elements that are widened, rounded or quantised, one piece of the matrix at a time. If rows become columns
 * of tiles, a piece consists of whole tiles, if possible, and of whole cache lines of the file. Values to be
 * quantised are transposed before, as f32. */
static bool pack_pieces(const kiln_tiling_t *tiling, const kiln_tensor_t *tensor, size_t rows, size_t columns) {
  _Alignas(64) float piece[PIECE_ROWS * PIECE_COLUMNS], other[PIECE_ROWS * PIECE_COLUMNS];
  const bool is_turned = tiling->tile > 0 && tiling->dim == 0;
  float *const scales = tiling->scales;
  size_t height = is_turned ? PIECE_ROWS : tiling->tile > 0 ? 8 : 1, width = PIECE_ROWS * PIECE_COLUMNS / height;
  if (is_turned && tiling->tile < height)
    height -= height % tiling->tile;
  if (is_turned)
    width -= width % tiling->factor;
  if (scales && !is_turned && !make_column_scales(tiling, tensor, rows, columns))
    return false;
  for (size_t row = 0; row < rows; row += height) {
    size_t high = rows - row < height ? rows - row : height;
    if (scales && is_turned) {
      memset(scales + row, 0, high * sizeof *scales);
      kiln_quantize_raise(scales + row, tensor, row * columns, high, columns, true);
      if (!make_scales(tiling, scales + row, high))
        return false;
    }
    for (size_t column = 0; column < columns; column += width) {
      size_t wide = columns - column < width ? columns - column : width;
      for (size_t i = 0; i < high; ++i)
        kiln_convert_read(tensor, piece + i * wide, (row + i) * columns + column, wide);
      kiln_tiling_t part = *tiling;
      part.reader = NULL;
      part.shift += is_turned ? row : column;
      part.packed += (is_turned ? column : row) * tiling->tile * tiling->bytes;
      if (tiling->dtype == KILN_F32) {
        kiln_pack_matrix(&part, (const char *)piece, high, wide);
      } else {
        float *from = piece, *to = other;
        size_t k_extent = high, outputs = wide, first = column;
        if (is_turned) {
          transpose_words((char *)other, (const char *)piece, high, wide, wide);
          part.dim = 1;
          from = other;
          to = piece;
          k_extent = wide;
          outputs = high;
          first = row;
        }
        if (!kiln_quantize((char *)to, tiling->dtype, from, k_extent, outputs, scales ? scales + first : NULL))
          return false;
        pack_numbers(part, (const signed char *)to, (char *)from, k_extent, outputs, first);
      }
      if (high == 1)
        pass_elements(tiling, tensor, row * columns + column + wide);
    }
    pass_elements(tiling, tensor, (row + high) * columns);
  }
  return true;
}

/* reader: see kiln_tiling_t. */
static bool pack(char *packed, const kiln_tensor_t *tensor, kiln_reader_t *reader, const kiln_weight_t *weight,
                 const kiln_placement_t *placement) {
  kiln_tiling_t tiling = {.packed = packed,
                          .tile = placement->tile,
                          .dim = placement->dim,
                          .shift = (size_t)placement->shift,
                          .k_extent = (size_t)kiln_elements_except(weight, placement->dim),
                          .bytes = (size_t)kiln_safetensors_stored_bytes(placement->dtype, 1),
                          .dtype = placement->dtype,
                          .factor = 1,
                          .reader = reader};
  size_t rows = 1, columns = (size_t)kiln_elements_except(weight, weight->rank);
  bool is_packed = true;
  if (tiling.tile > 0) {
    size_t extent = (size_t)weight->shape[tiling.dim];
    rows = tiling.dim == 0 ? extent : tiling.k_extent;
    columns = tiling.dim == 0 ? tiling.k_extent : extent;
  }
  if (tensor->dtype == weight->dtype && !tensor->form && !kiln_is_stored(weight, placement)) {
    kiln_pack_matrix(&tiling, tensor->data, rows, columns);
  } else {
    const kiln_rounding_t callers = kiln_rounding_begin();
    if (placement->group >= KILN_LEAST_GROUP || kiln_pack_groups_fit(placement, tensor)) {
      is_packed = kiln_pack_groups(&tiling, placement, tensor, rows, columns);
    } else {
      if (placement->group)
        tiling.factor = placement->group;
      if (placement->scales)
        tiling.scales = (float *)(void *)(packed + placement->scales) + tiling.shift;
      if (placement->zeros) {
        tiling.sums = (int32_t *)(void *)(packed + placement->zeros) + tiling.shift;
        memset(tiling.sums, 0, (size_t)weight->shape[tiling.dim] * sizeof *tiling.sums);
      }
      is_packed = pack_pieces(&tiling, tensor, rows, columns);
    }
    kiln_rounding_end(callers);
  }
  finish_stream();
  return is_packed;
}

bool kiln_pack_weight(char *packed, const char *data, uint32_t dtype, const kiln_weight_t *weight,
                      const kiln_placement_t *placement) {
  const kiln_tensor_t tensor = {.data = data, .dtype = (uint16_t)dtype};
  return pack(packed, &tensor, NULL, weight, placement);
}

bool kiln_pack_tensor(char *packed, const kiln_tensor_t *tensor, const kiln_weight_t *weight,
                      const kiln_placement_t *placement) {
  kiln_reader_t reader = {tensor->source, tensor->data};
  /* A tensor with a form is not read in the order of the file. */
  const bool is_packed = pack(packed, tensor, reader.file && !tensor->form ? &reader : NULL, weight, placement);
  if (reader.file)
    kiln_file_give_back(reader.file, reader.kept, tensor->data + (tensor->end - tensor->begin));
  return is_packed;
}
