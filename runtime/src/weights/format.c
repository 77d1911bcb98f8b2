// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Finds the format of a quantised weight, and dequantises a number of it. */
#include "weights/format.h"
#include "weights/convert.h"

#include <string.h>

static const kiln_format_t formats[] = {
#define KILN_FORMAT KILN_FORMAT_ROW
#include "kiln/formats.def"
};

const kiln_format_t *kiln_format_find(uint32_t dtype, uint32_t group, bool has_third) {
  const kiln_format_t *format = formats + sizeof formats / sizeof *formats - 1;
  while (format > formats && (format->element != dtype || !kiln_format_fits(format, group, has_third)))
    --format;
  return format;
}

const kiln_format_t *kiln_format_of(const kiln_placement_t *placement, kiln_format_array_t arrays[KILN_FORMAT_ARRAYS]) {
  const kiln_format_t *const format = kiln_format_find(placement->dtype, placement->group, placement->zeros != 0);
  kiln_format_arrays(format, placement->group, arrays);
  arrays[1].offset = placement->scales;
  arrays[2].offset = placement->zeros;
  return format;
}

/* Widens it as an f16, which has the same bits of exponent and fraction, and a bias that is 8 larger. */
float kiln_widen_f8(char code) {
  const uint16_t half = (uint16_t)((code & 0x80) << 8 | (code & 0x7F) << 7);
  float value;
  kiln_convert_widen(&value, (const char *)&half, 1, KILN_F16);
  return value * 256;
}

float kiln_widen_f4(uint32_t code) {
  const uint16_t half = (uint16_t)((code & 8) << 12 | (code & 7) << 9);
  float value;
  kiln_convert_widen(&value, (const char *)&half, 1, KILN_F16);
  return value * 0x1p14f;
}

float kiln_widen_e8m0(char code) {
  const uint32_t exponent = (unsigned char)code, bits = exponent ? exponent << 23 : 0x00400000;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float kiln_format_decode(const kiln_format_t *format, const char *const items[KILN_FORMAT_ARRAYS], size_t stride,
                         uint64_t k) {
  float value, scale;
  int32_t number;
  if (format->outer_bits)
    return kiln_decode_block(format, items, stride, k);
  if (!format->scale_bits) {
    kiln_convert_widen(&value, items[0], 1, format->element);
    return value;
  }
  if (format->element == KILN_F4E2M1) {
    uint32_t word;
    memcpy(&word, items[0], sizeof word);
    return kiln_widen_f4(word >> KILN_FORMAT_BIT(k)) * kiln_widen_e8m0(*items[1]);
  }
  kiln_convert_widen(&scale, items[1], 1, format->scale);
  if (format->element == KILN_F8E4M3)
    return kiln_widen_f8(*items[0]) * scale;
  if (format->bits == 8) {
    number = (int32_t)((const signed char *)items[0])[k];
  } else {
    uint32_t word;
    memcpy(&word, items[0], sizeof word);
    number = (int32_t)((word >> KILN_FORMAT_BIT(k) & 15) ^ 8) - 8;
  }
  if (format->has_zeros)
    number -= *(const signed char *)items[2];
  return (float)number * scale;
}
