// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Quantisation of an f32 weight (dsl/SPEC.md, Stored weights). The bytes must be the same on every machine: each
 * operation is an f32 operation, rounded to nearest even, with subnormals, whatever the caller's modes are. f16 and
 * bf16 are rounded; an i8 is round(w / s), where s = max |w| / 127 of its row or column. The loops are written to
 * vectorise, and compare magnitudes as integers. */
#include "weights/convert.h"
#include "weights/format.h"

#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* The number of values that are processed together. */
enum { LINE = 512, LANES = 16 };

kiln_rounding_t kiln_rounding_begin(void) {
#if defined(__SSE__)
  const kiln_rounding_t callers = _mm_getcsr();
  _mm_setcsr(0x1F80); /* round to nearest, no flushing of subnormals, all exceptions masked */
#elif defined(__aarch64__)
  kiln_rounding_t callers; /* not by <fenv.h>, whose functions and types differ among systems */
  __asm__ volatile("mrs %0, fpcr" : "=r"(callers));
  __asm__ volatile("msr fpcr, xzr" ::: "memory"); /* the same modes */
#else
  kiln_rounding_t callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
#endif
  return callers;
}

void kiln_rounding_end(kiln_rounding_t callers) {
#if defined(__SSE__)
  _mm_setcsr(callers);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(callers) : "memory");
#else
  fesetenv(&callers);
#endif
}

static inline int32_t bits_of(const float *value) {
  int32_t bits;
  memcpy(&bits, value, sizeof bits);
  return bits;
}

/* The bits of |value|, which are ordered like the values. */
static inline int32_t magnitude_of(const float *value) { return bits_of(value) & 0x7FFFFFFF; }

/* The largest magnitude that can be stored. */
static int32_t limit_of(const kiln_format_t *format) { return bits_of(&format->limit); }

/* Whether any magnitude exceeds the limit. */
static bool exceeds(const float *line, size_t count, int32_t limit) {
  int32_t signs = 0;
  for (size_t i = 0; i < count; ++i)
    signs |= limit - magnitude_of(line + i);
  return signs < 0;
}

/* The maximum of `most` and the magnitudes of a line. Uses several lanes, to break the dependency of each maximum on
 * the previous one. */
static int32_t largest_of(int32_t most, const float *line, size_t count) {
  int32_t each[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (size_t lane = 0; lane < LANES; ++lane) {
      const int32_t magnitude = magnitude_of(line + i + lane);
      each[lane] = magnitude > each[lane] ? magnitude : each[lane];
    }
  for (; i < count; ++i)
    most = magnitude_of(line + i) > most ? magnitude_of(line + i) : most;
  for (size_t lane = 0; lane < LANES; ++lane)
    most = each[lane] > most ? each[lane] : most;
  return most;
}

/* Raises the maximum magnitude of each column by those of a line. */
static void raise_each(float *restrict most, const float *restrict line, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t larger = magnitude_of(line + i) > bits_of(most + i) ? magnitude_of(line + i) : bits_of(most + i);
    memcpy(most + i, &larger, sizeof larger);
  }
}

void kiln_quantize_raise(float *most, const kiln_tensor_t *tensor, uint64_t first, size_t rows, size_t columns,
                         bool of_rows) {
  float line[LINE];
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0, wide; column < columns; column += wide, first += wide) {
      wide = columns - column < LINE ? columns - column : LINE;
      kiln_convert_read(tensor, line, first, wide);
      if (of_rows) {
        const int32_t larger = largest_of(bits_of(most + row), line, wide);
        memcpy(most + row, &larger, sizeof larger);
      } else {
        raise_each(most + column, line, wide);
      }
    }
}

bool kiln_quantize_scales(float *most, size_t count, const kiln_format_t *format, float divisor) {
  if (!kiln_quantize_fits(most, count, format))
    return false;
  for (size_t i = 0; i < count; ++i)
    most[i] /= divisor;
  return true;
}

/* Adding 1.5 * 2^23, whose neighbours are 1 apart, rounds a quotient to an integer. If the scale is 0, all values
 * are 0 and are divided by 1. A subnormal scale may be so imprecise that a quotient exceeds 127. */
static void quantize_line(char *restrict to, const float *restrict line, const float *restrict scales, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t bits = bits_of(scales + i), divisor_bits = bits | (-(bits == 0) & 0x3F800000);
    float divisor;
    memcpy(&divisor, &divisor_bits, sizeof divisor);
    const float sum = line[i] / divisor + 0x1.8p23f;
    int32_t whole = bits_of(&sum) - 0x4B400000;
    whole = whole > 127 ? 127 : whole;
    to[i] = (char)(whole < -127 ? -127 : whole);
  }
}

bool kiln_quantize_fits(const float *from, size_t count, const kiln_format_t *format) {
  return !exceeds(from, count, limit_of(format));
}

bool kiln_quantize(char *to, uint32_t stored, const float *from, size_t rows, size_t columns, const float *scales) {
  if (!scales) {
    kiln_convert_narrow(to, from, rows * columns, stored);
    return kiln_quantize_fits(from, rows * columns, kiln_format_find(stored, 0, false));
  }
  if (stored != KILN_I8)
    kiln_quantize_to_f8(to, from, rows, columns, scales);
  else
    for (size_t row = 0; row < rows; ++row)
      quantize_line(to + row * columns, from + row * columns, scales, columns);
  return true;
}

uint64_t kiln_quantize_find(const kiln_tensor_t *tensor, uint64_t count, const kiln_format_t *format, float *value) {
  for (uint64_t i = 0; i < count; ++i) {
    kiln_convert_read(tensor, value, i, 1);
    if (magnitude_of(value) > limit_of(format))
      return i;
  }
  return count;
}
