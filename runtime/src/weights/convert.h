// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Conversion between element types. */
#ifndef KILN_CONVERT_H
#define KILN_CONVERT_H

#include "core/tensors.h"
#include "kiln/formats.h"

#if !defined(__SSE__) && !defined(__aarch64__)
#include <fenv.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* convert.c */

/* Whether the type is f32, f16 or bf16. */
bool kiln_convert_is_float(uint32_t dtype);
/* Whether a weight of type `to` can be converted from a file's elements of type `from`. */
bool kiln_convert_is_source(uint32_t from, uint32_t to);
/* The valid source types: "F32, F16 or BF16". */
const char *kiln_convert_sources_text(uint32_t to);
/* Converts `count` elements of f32, f16 or bf16, at any address, to f32. */
void kiln_convert_widen(float *to, const char *from, size_t count, uint32_t dtype);
/* Converts `count` elements of a tensor of any form, from element `first` on, to f32. */
void kiln_convert_read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
/* Rounds values that have a finite result to the nearest f16 or bf16, between kiln_rounding_begin and _end; or
 * copies f32. */
void kiln_convert_narrow(char *to, const float *from, size_t count, uint32_t dtype);

/* quantize.c */

/* The caller's floating-point modes. */
#if defined(__SSE__)
typedef unsigned kiln_rounding_t;
#elif defined(__aarch64__)
typedef uint64_t kiln_rounding_t; /* FPCR */
#else
typedef fenv_t kiln_rounding_t;
#endif
/* Sets round to nearest even, with subnormals and without traps. */
kiln_rounding_t kiln_rounding_begin(void);
void kiln_rounding_end(kiln_rounding_t callers);

/* The following functions must be called between those two. False: an element is NaN, infinite or too large to be
 * stored, and the output is undefined. */

/* Updates the largest magnitudes of each row or each column with those of a matrix that begins with the tensor's
 * element `first`. They are initially zero. */
void kiln_quantize_raise(float *most, const kiln_tensor_t *tensor, uint64_t first, size_t rows, size_t columns,
                         bool of_rows);
/* Divides the largest magnitudes, which gives the scales of a matrix that is quantised to the format. */
bool kiln_quantize_scales(float *most, size_t count, const kiln_format_t *format, float divisor);
/* Quantises a matrix to the type `stored`; `scales`: those of its columns, or null. */
bool kiln_quantize(char *to, uint32_t stored, const float *from, size_t rows, size_t columns, const float *scales);
/* Whether all elements can be stored in this format. */
bool kiln_quantize_fits(const float *from, size_t count, const kiln_format_t *format);
/* Returns the first element that cannot be stored, and its value; `count`: there is none. f32 can store finite
 * values. */
uint64_t kiln_quantize_find(const kiln_tensor_t *tensor, uint64_t count, const kiln_format_t *format, float *value);

/* small_floats.c; small_floats_none.c takes its place in libraries without such weights. */

/* kiln_quantize to e4m3. */
void kiln_quantize_to_f8(char *to, const float *from, size_t rows, size_t columns, const float *scales);

/* kiln_quantize_groups to e2m1; scales are e8m0, and zeros are not used. */
bool kiln_quantize_to_f4(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t k_extent,
                         size_t columns, size_t group);

/* block_formats.c; block_formats_none.c takes its place in libraries without such weights. */

/* Quantises whole blocks of a matrix [k_extent][columns] to a format of which kiln_format_has_blocks is true, whose
 * arrays are [items][columns] here. The third array already has the outer scales if they are those of whole outputs. */
bool kiln_quantize_blocks(const kiln_format_t *format, char *const arrays[KILN_FORMAT_ARRAYS], const float *from,
                          size_t k_extent, size_t columns);
/* kiln_format_decode for formats with outer scales. */
float kiln_decode_block(const kiln_format_t *format, const char *const items[KILN_FORMAT_ARRAYS], size_t stride,
                        uint64_t k);

/* quantize_groups.c */

/* The maximum number of columns that are quantised together. */
enum { KILN_GROUP_COLUMNS = 32 };
/* Quantises whole groups of a matrix [k_extent][columns] to int4: words [k_extent / 8][columns], f16 scales and zeros
 * [k_extent / group][columns]; null zeros mean a zero point of 8. Elements and zeros are stored minus 8. Must be called
 * between kiln_rounding_begin and _end; returns false like kiln_quantize. */
bool kiln_quantize_groups(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t k_extent,
                          size_t columns, size_t group);

#ifdef __cplusplus
}
#endif
#endif /* KILN_CONVERT_H */
