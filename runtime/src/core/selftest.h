// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The values of self-tests: weights and inputs that the compiler generates for its evaluation and the runtime
 * generates again. All are small multiples of powers of two, so that they are exact on every machine. */
#ifndef KILN_SELFTEST_H
#define KILN_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FNV-1a (Fowler, Noll, Vo; RFC 9923), continuing from `digest`; 0 at first. */
static inline uint64_t kiln_selftest_digest(uint64_t digest, const void *bytes, size_t count) {
  const unsigned char *next = (const unsigned char *)bytes;
  digest ^= UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < count; ++i)
    digest = (digest ^ next[i]) * UINT64_C(0x100000001b3);
  return digest;
}

/* 64 random bits for element `index`: counter-based SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t kiln_selftest_bits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A value in [-1, 1) with 8 bits, which every float type can represent. */
static inline float kiln_selftest_float(uint64_t key, uint64_t index) {
  return (float)((int32_t)(kiln_selftest_bits(key, index) >> 56) - 128) / 128.0f;
}

/* A value in [minimum, limit). */
static inline int64_t kiln_selftest_integer(uint64_t key, uint64_t index, int64_t minimum, int64_t limit) {
  return minimum + (int64_t)((kiln_selftest_bits(key, index) >> 32) % (uint64_t)(limit - minimum));
}

/* Returns the scale of a weight with this many elements: multiplying by the matrix roughly preserves magnitudes. */
static inline float kiln_selftest_scale(uint64_t elements, uint64_t rows) {
  float scale = 2.0f;
  for (uint64_t columns = elements / rows; columns > 1; columns = (columns + 3) / 4)
    scale /= 2.0f;
  return scale;
}

/* An element of a weight. Vectors are positive, since they include variances and row scales. */
static inline float kiln_selftest_weight(uint64_t key, uint64_t index, uint32_t rank, float scale) {
  const float unit = kiln_selftest_float(key, index);
  return rank < 2 ? 1.0f + unit / 2.0f : unit * scale;
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_SELFTEST_H */
