/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The rows of formats.def as structs, and the layout of a stored weight in memory, which follows from its row. This is
 * the only definition of the layout: the compiler places weights and generates the code that reads them by it, and the
 * runtime packs them by it. Plain C that is also C++.
 *
 * A stored weight consists of up to KILN_FORMAT_ARRAYS arrays, in this order: the numbers; the scales; the zero points
 * or, for int8 in fours, the sums. The outputs n are split into tiles of `tile`. An array that has one item for `each`
 * numbers along K is [tiles][ceil(K / each)][tile], and one that has an item for each output is [tiles][tile]. */
#ifndef KILN_FORMATS_H
#define KILN_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

/* The rows of element_types.def, which are numbered like kiln_dtype_t and kiln::ElementType, and their bits. */
enum {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir) KILN_ROW_##NAME,
#include "kiln/element_types.def"
  KILN_ROW_NONE
};
enum {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir) KILN_BITS_##NAME = (bits),
#include "kiln/element_types.def"
  KILN_BITS_NONE = 0
};

enum {
  KILN_FORMAT_ARRAYS = 3,
  KILN_FORMAT_ALIGNMENT = 64, /* where the compiler begins an array */
  KILN_WORD_ELEMENTS = 8,     /* 4-bit numbers in a word of 32 bits */
  KILN_LEAST_GROUP = 32
};

/* An array of a stored weight: an item of `bytes` for `each` numbers along K of an output; each 0: for all of them. */
typedef struct kiln_format_array_t {
  uint64_t offset; /* from the beginning of the first array */
  uint32_t bytes, each;
} kiln_format_array_t;

/* A row of formats.def. */
typedef struct kiln_format_t {
  char name[12];
  char text[8];           /* the element type in messages of the runtime: "I4" */
  uint8_t element, scale; /* KILN_ROW_ values */
  uint8_t bits, scale_bits;
  uint8_t group, largest_group;
  bool has_zeros;
  float divisor, limit;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]; /* without offsets; bytes are 0 for those that the format lacks */
} kiln_format_t;
#define KILN_FORMAT_ROW(name, element, scale, group, largest_group, has_zeros, divisor, limit)                         \
  {#name,                                                                                                              \
   #element,                                                                                                           \
   KILN_ROW_##element,                                                                                                 \
   KILN_ROW_##scale,                                                                                                   \
   KILN_BITS_##element,                                                                                                \
   KILN_BITS_##scale,                                                                                                  \
   group,                                                                                                              \
   largest_group,                                                                                                      \
   has_zeros,                                                                                                          \
   divisor,                                                                                                            \
   limit,                                                                                                              \
   {{0, KILN_BITS_##element < 8 ? 4 : KILN_BITS_##element / 8, KILN_BITS_##element < 8 ? KILN_WORD_ELEMENTS : 1},      \
    {0, KILN_BITS_##scale / 8, group},                                                                                 \
    {0, has_zeros, group}}},

#ifdef __cplusplus
#define KILN_FORMAT_FUNCTION constexpr
#else
#define KILN_FORMAT_FUNCTION static inline
#endif

/* The lowest bit of 4-bit number k in its word: k and k + 4 are the nibbles of byte k % 4. A macro, since generated
 * code computes it, too. */
#define KILN_FORMAT_BIT(k) ((k) % 4 * 8 + (k) / 4 % 2 * 4)

/* Whether a weight may have this `group`, see kiln_format_arrays. */
KILN_FORMAT_FUNCTION bool kiln_format_takes(const kiln_format_t *format, uint32_t group) {
  return group >= format->group && group <= format->largest_group && (group & (group - 1)) == 0;
}

/* Sets the arrays of a weight. group: as in kiln_placement_t, the size of the groups; for I8 without groups how many
 * along K are interleaved, where four have an i32 for each output after the scales, 128 times the sum of its numbers.
 */
KILN_FORMAT_FUNCTION void kiln_format_arrays(const kiln_format_t *format, uint32_t group,
                                             kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]) {
  for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i)
    arrays[i] = format->arrays[i];
  if (group >= KILN_LEAST_GROUP) {
    arrays[1].each = arrays[2].each = group;
  } else if (group) {
    arrays[0].bytes = arrays[0].each = group;
    arrays[2].bytes = group & 4;
  }
}

/* The items along K of each output. */
KILN_FORMAT_FUNCTION uint64_t kiln_format_items(const kiln_format_array_t *array, uint64_t k_extent) {
  return array->each ? (k_extent + array->each - 1u) / array->each : 1;
}

/* The item with number k of output n, which counts from the beginning of the first tile. */
KILN_FORMAT_FUNCTION uint64_t kiln_format_item(const kiln_format_array_t *array, uint64_t tile, uint64_t k_extent,
                                               uint64_t n, uint64_t k) {
  return (n / tile * kiln_format_items(array, k_extent) + (array->each ? k / array->each : 0)) * tile + n % tile;
}

#endif /* KILN_FORMATS_H */
