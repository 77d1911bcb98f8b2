// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The storage formats of quantised weights, rows of kiln/formats.def, and the value of a stored number. quantize.c and
 * quantize_groups.c are the other direction. */
#ifndef KILN_FORMAT_H
#define KILN_FORMAT_H

#include "core/model.h"
#include "kiln/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the row with this element type, and `group` and a third array as in kiln_placement_t; the row of f32 if there
 * is none. */
const kiln_format_t *kiln_format_find(uint32_t dtype, uint32_t group, bool has_third);
/* Returns the format of a placement, and fills its arrays. */
const kiln_format_t *kiln_format_of(const kiln_placement_t *placement, kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]);
/* Dequantises a number from the items of the format's arrays that it shares; k: along K, in the items of the first,
 * which are `stride` bytes apart. */
float kiln_format_decode(const kiln_format_t *format, const char *const items[KILN_FORMAT_ARRAYS], size_t stride,
                         uint64_t k);
/* The value of an e4m3 that is not NaN. */
float kiln_widen_f8(char code);
/* The value of the e2m1 in the lowest four bits. */
float kiln_widen_f4(uint32_t code);
/* 2^(code - 127); infinity for 255, which is NaN. */
float kiln_widen_e8m0(char code);

#ifdef __cplusplus
}
#endif
#endif /* KILN_FORMAT_H */
