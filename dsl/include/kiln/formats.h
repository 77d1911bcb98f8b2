/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The rows of formats.def as structs, and the layout of a stored weight in memory, which follows from its row. This is
 * the only definition of the layout: the compiler places weights and generates the code that reads them by it, and the
 * runtime packs them by it. Plain C that is also C++.
 *
 * A stored weight consists of up to KILN_FORMAT_ARRAYS arrays, in this order: the numbers; the scales; the zero points,
 * the outer scales or, for int8 in fours, the sums. A scale and its minimum are one item, the scale in the low half.
 * The outputs n are split into tiles of `tile`. An array that has `per` items for `each` numbers along K is
 * [tiles][ceil(K / each) * per][tile], and one that has an item for each output is [tiles][tile]. */
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
  KILN_SIX_ELEMENTS = 16,     /* 6-bit numbers in three words */
  KILN_LEAST_GROUP = 16
};

/* An array of a stored weight: `per` items of `bytes` for `each` numbers along K of an output; each 0: one for all of
 * them. */
typedef struct kiln_format_array_t {
  uint64_t offset; /* from the beginning of the first array */
  uint32_t bytes, each, per;
} kiln_format_array_t;

/* A row of formats.def. */
typedef struct kiln_format_t {
  char name[12];
  char text[8];                  /* the element type in messages of the runtime: "I4" */
  uint8_t element, scale, outer; /* KILN_ROW_ values */
  uint8_t bits, scale_bits, outer_bits;
  uint8_t group, largest_group;
  uint16_t block;
  bool has_zeros, has_minimums;
  float divisor, limit;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]; /* without offsets; bytes are 0 for those that the format lacks */
} kiln_format_t;
#define KILN_FORMAT_ROW(name, element, scale, group, largest_group, has_zeros, outer, block, has_minimums, divisor,    \
                        limit)                                                                                         \
  {#name,                                                                                                              \
   #element,                                                                                                           \
   KILN_ROW_##element,                                                                                                 \
   KILN_ROW_##scale,                                                                                                   \
   KILN_ROW_##outer,                                                                                                   \
   KILN_BITS_##element,                                                                                                \
   KILN_BITS_##scale,                                                                                                  \
   KILN_BITS_##outer,                                                                                                  \
   group,                                                                                                              \
   largest_group,                                                                                                      \
   block,                                                                                                              \
   has_zeros,                                                                                                          \
   has_minimums,                                                                                                       \
   divisor,                                                                                                            \
   limit,                                                                                                              \
   {KILN_FORMAT_NUMBERS(KILN_BITS_##element),                                                                          \
    {0, KILN_BITS_##scale / 8 * (1 + (has_minimums)), group, 1},                                                       \
    {0, KILN_BITS_##outer > 0 ? KILN_BITS_##outer / 8 * (1 + (has_minimums)) : (has_zeros),                            \
     KILN_BITS_##outer > 0 ? (block) : (group), 1}}},
/* The array of numbers of so many bits. */
#define KILN_FORMAT_NUMBERS(bits)                                                                                      \
  {0, (bits) < 8 ? 4 : (bits) / 8,                                                                                     \
   (bits) == 6  ? KILN_SIX_ELEMENTS                                                                                    \
   : (bits) < 8 ? KILN_WORD_ELEMENTS                                                                                   \
                : 1,                                                                                                   \
   (bits) == 6 ? 3 : 1}

#ifdef __cplusplus
#define KILN_FORMAT_FUNCTION constexpr
#else
#define KILN_FORMAT_FUNCTION static inline
#endif

/* The lowest bit of 4-bit number k in its word: k and k + 4 are the nibbles of byte k % 4. A macro, since generated
 * code computes it, too. */
#define KILN_FORMAT_BIT(k) ((k) % 4 * 8 + (k) / 4 % 2 * 4)
/* Sixteen 6-bit numbers are three words: the low halves of two times eight numbers, as if they had four bits, and the
 * two highest bits of all. The lowest bit of those of number k in the third word. */
#define KILN_FORMAT_HIGH_BIT(k) ((k) % 16 * 2)

/* Whether a weight may have this `group`, see kiln_format_arrays. */
KILN_FORMAT_FUNCTION bool kiln_format_takes(const kiln_format_t *format, uint32_t group) {
  return group >= format->group && group <= format->largest_group && (group & (group - 1)) == 0;
}

/* Whether a weight with this `group`, and with a third array or without, has this format, given that it has the
 * format's element type. */
KILN_FORMAT_FUNCTION bool kiln_format_fits(const kiln_format_t *format, uint32_t group, bool has_third) {
  if (group < KILN_LEAST_GROUP)
    return format->group == 0;
  return kiln_format_takes(format, group) && (format->has_zeros || format->outer_bits > 0) == has_third;
}

/* The numbers along K that cannot be separated: those of a group or, with outer scales, of a block. */
KILN_FORMAT_FUNCTION uint32_t kiln_format_whole(const kiln_format_t *format, uint32_t group) {
  return group < KILN_LEAST_GROUP ? 1 : format->block ? format->block : group;
}

/* Whether the code of the format is in the runtime's block_formats.c: it has bytes in groups, or outer scales. */
KILN_FORMAT_FUNCTION bool kiln_format_has_blocks(const kiln_format_t *format) {
  return format->outer_bits > 0 || (format->group > 0 && format->bits == 8);
}

/* Sets the arrays of a weight. group: as in kiln_placement_t, the size of the groups; for I8 without groups how many
 * along K are interleaved, where four have an i32 for each output after the scales, 128 times the sum of its numbers.
 */
KILN_FORMAT_FUNCTION void kiln_format_arrays(const kiln_format_t *format, uint32_t group,
                                             kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]) {
  for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i)
    arrays[i] = format->arrays[i];
  if (group >= KILN_LEAST_GROUP) {
    arrays[1].each = group;
    if (!format->outer_bits)
      arrays[2].each = group;
  } else if (group) {
    arrays[0].bytes = arrays[0].each = group;
    arrays[2].bytes = group & 4;
  }
}

/* The items along K of each output. */
KILN_FORMAT_FUNCTION uint64_t kiln_format_items(const kiln_format_array_t *array, uint64_t k_extent) {
  return array->each ? (k_extent + array->each - 1u) / array->each * array->per : 1;
}

/* The first item of number k of output n, which counts from the beginning of the first tile. The other items of the
 * same numbers follow at a distance of a tile. */
KILN_FORMAT_FUNCTION uint64_t kiln_format_item(const kiln_format_array_t *array, uint64_t tile, uint64_t k_extent,
                                               uint64_t n, uint64_t k) {
  return (n / tile * kiln_format_items(array, k_extent) + (array->each ? k / array->each * array->per : 0)) * tile +
         n % tile;
}

#endif /* KILN_FORMATS_H */
