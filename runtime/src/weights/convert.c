// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Converts the element types of weight files to those of weights. Conversion to f32 is exact: bits are moved and
 * integers converted, so that the processor's floating-point modes, such as flush-to-zero, do not matter. Conversion
 * to f16 and bf16 rounds. */
#include "weights/convert.h"
#include "readers/files.h"

#include <string.h>

bool kiln_convert_is_float(uint32_t dtype) { return dtype == KILN_F32 || dtype == KILN_F16 || dtype == KILN_BF16; }

bool kiln_convert_is_source(uint32_t from, uint32_t to) {
  return from == to || (kiln_convert_is_float(from) && kiln_convert_is_float(to));
}

const char *kiln_convert_sources_text(uint32_t to) {
  return kiln_convert_is_float(to) ? "F32, F16 or BF16" : kiln_safetensors_dtype_text(to);
}

/* Widens an f16 with a sign, 5 exponent bits and 10 fraction bits; a NaN keeps its fraction. */
static inline uint32_t widen_f16(uint16_t half) {
  const int32_t magnitude = half & 0x7FFF, rebias = (127 - 15) << 23;
  const float fraction = (float)magnitude * 0x1p-24f; /* the value of a subnormal, which is a normal f32 */
  int32_t subnormal;
  memcpy(&subnormal, &fraction, sizeof subnormal);
  /* Infinities and NaN have the largest exponent in both formats. Masks instead of branches, so that the loop
   * vectorises. */
  const int32_t normal = (magnitude << 13) + rebias + (-(magnitude >= 0x7C00) & rebias);
  const int32_t is_subnormal = -(magnitude < 0x400);
  return (uint32_t)(half & 0x8000) << 16 | (uint32_t)((subnormal & is_subnormal) | (normal & ~is_subnormal));
}

static inline uint32_t widen_bf16(uint16_t half) { return (uint32_t)half << 16; }

/* A loop that compilers vectorise. */
static inline __attribute__((always_inline)) void widen(float *restrict to, const char *restrict from, size_t count,
                                                        uint32_t (*widen_one)(uint16_t)) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    memcpy(&half, from + i * sizeof half, sizeof half);
    const uint32_t bits = widen_one(half);
    memcpy(to + i, &bits, sizeof bits);
  }
}

void kiln_convert_widen(float *to, const char *from, size_t count, uint32_t dtype) {
  if (dtype == KILN_F32)
    memcpy(to, from, count * sizeof *to);
  else if (dtype == KILN_F16)
    widen(to, from, count, widen_f16);
  else
    widen(to, from, count, widen_bf16);
}

void kiln_convert_read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  if (tensor->form)
    tensor->form->read(tensor, to, first, count);
  else
    kiln_convert_widen(to, tensor->data + first * (tensor->dtype == KILN_F32 ? 4 : 2), count, tensor->dtype);
}

/* Rounds to nearest even: adds half a unit in the last place, minus one bit if the last place is even, and
 * truncates. Below the normal numbers it rounds the sum with 0.5, whose last place is that of an f16 subnormal. */
static inline uint16_t narrow_f16(float value) {
  uint32_t bits, sum_bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t magnitude = bits & 0x7FFFFFFF, normal = (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  float size;
  memcpy(&size, &magnitude, sizeof size);
  const float sum = size + 0.5f;
  memcpy(&sum_bits, &sum, sizeof sum_bits);
  const uint32_t is_subnormal = -(uint32_t)((int32_t)magnitude < (127 - 14) << 23);
  return (uint16_t)((bits >> 16 & 0x8000) | (is_subnormal & (sum_bits - 0x3F000000)) |
                    (~is_subnormal & (normal - ((127 - 15) << 10))));
}

static inline uint16_t narrow_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline __attribute__((always_inline)) void narrow(char *restrict to, const float *restrict from, size_t count,
                                                         uint16_t (*narrow_one)(float)) {
  for (size_t i = 0; i < count; ++i) {
    const uint16_t half = narrow_one(from[i]);
    memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

void kiln_convert_narrow(char *to, const float *from, size_t count, uint32_t dtype) {
  if (dtype == KILN_F32)
    memcpy(to, from, count * sizeof *from);
  else if (dtype == KILN_F16)
    narrow(to, from, count, narrow_f16);
  else
    narrow(to, from, count, narrow_bf16);
}
