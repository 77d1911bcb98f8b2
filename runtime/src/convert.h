// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Elements of one type made of those of another. */
#ifndef KILN_CONVERT_H
#define KILN_CONVERT_H

#include "tensors.h"

#if !defined(__SSE__)
#include <fenv.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* convert.c */

/* f32, f16 or bf16. */
bool kiln_convert_is_float(uint32_t dtype);
/* Whether a weight of the type `to` is made of a file's elements of the type `from`. */
bool kiln_convert_is_source(uint32_t from, uint32_t to);
/* The types of which that is true: "F32, F16 or BF16". */
const char *kiln_convert_sources_text(uint32_t to);
/* `count` elements of f32, f16 or bf16, at any address, as f32. */
void kiln_convert_widen(float *to, const char *from, size_t count, uint32_t dtype);
/* The same of a tensor's, from element `first` on, whatever its form. */
void kiln_convert_read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
/* The nearest f16 or bf16 of numbers that have a finite one, between kiln_rounding_begin and _end; or the same f32. */
void kiln_convert_narrow(char *to, const float *from, size_t count, uint32_t dtype);

/* quantize.c */

/* The caller's modes of floating-point arithmetic. */
#if defined(__SSE__)
typedef unsigned kiln_rounding_t;
#else
typedef fenv_t kiln_rounding_t;
#endif
/* To the nearest number, of two the even one, with subnormals; what raises a flag does not trap. */
kiln_rounding_t kiln_rounding_begin(void);
void kiln_rounding_end(kiln_rounding_t callers);

/* The rest works between those two. False: an element is NaN, infinite or too large to be stored, and what was written
 * is of no use. */

/* Raises the largest magnitudes, of each row or of each column, to those of a matrix that begins with the tensor's
 * element `first`. They begin as zeros. */
void kiln_quantize_raise(float *most, const kiln_tensor_t *tensor, uint64_t first, size_t rows, size_t columns,
                         bool of_rows);
/* Makes scales of them, for a matrix that becomes i8. */
bool kiln_quantize_scales(float *most, size_t count);
/* Makes elements of the type `stored` of a matrix; scales, for i8, are those of its columns. */
bool kiln_quantize(char *to, uint32_t stored, const float *from, size_t rows, size_t columns, const float *scales);
/* Whether all elements can be stored so. */
bool kiln_quantize_fits(const float *from, size_t count, uint32_t stored);
/* The first element that cannot be stored, with its value; count: there is none. As f32 those can that are finite. */
uint64_t kiln_quantize_find(const kiln_tensor_t *tensor, uint64_t count, uint32_t stored, float *value);

/* quantize_groups.c */

/* Elements of int4 in a word; columns that are quantised together, at most. */
enum { KILN_WORD_ELEMENTS = 8, KILN_GROUP_COLUMNS = 32 };
/* The lowest bit of an element in its word: of k and k + 4 in the halves of byte k % 4. */
static inline unsigned kiln_bit_in_word(uint64_t k) { return (unsigned)(k % 4 * 8 + k / 4 % 2 * 4); }
/* Makes int4 of whole groups of a matrix [depth][columns]: words [depth / 8][columns], scales, which are f16, and
 * zeros, null if 8 stands for 0, [depth / group][columns]. Elements and zeros are less 8. Works between
 * kiln_rounding_begin and _end; false as of kiln_quantize. */
bool kiln_quantize_groups(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t depth,
                          size_t columns, size_t group);

#ifdef __cplusplus
}
#endif
#endif /* KILN_CONVERT_H */
