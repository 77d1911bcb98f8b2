// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* First weights of a training. Element i of a tensor is made of Philox4x32-10 (Salmon et al. 2011) with the seed as its
 * key, low half first, and the counter
 *
 *   i mod 2^32, i / 2^32 + 2^24 attempt, FNV-1a of the tensor's name, low half first.
 *
 * Of the words w, uniform numbers take x(w0) and normal ones x(w0) and x(w1), with x(w) = (2 (w / 2^8) + 1) / 2^24 - 1
 * of whole numbers: odd multiples of 2^-24 in (-1, 1). Marsaglia's polar method (1964) makes a normal number of two,
 * and draws again where they lie outside of the unit circle. Everything is computed in f64 by additions,
 * multiplications and divisions, each rounded as IEEE 754 says: the same bits on every machine. */
#include "internal.h"

#include <string.h>

static void draw(const kiln_computed_t *computed, uint64_t index, uint32_t attempt, double numbers[2]) {
  uint32_t words[4] = {(uint32_t)index, (uint32_t)(index >> 32) + (attempt << 24), (uint32_t)computed->key,
                       (uint32_t)(computed->key >> 32)};
  uint32_t key[2] = {(uint32_t)computed->seed, (uint32_t)(computed->seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t even = UINT64_C(0xD2511F53) * words[0], odd = UINT64_C(0xCD9E8D57) * words[2];
    words[0] = (uint32_t)(odd >> 32) ^ words[1] ^ key[0];
    words[1] = (uint32_t)odd;
    words[2] = (uint32_t)(even >> 32) ^ words[3] ^ key[1];
    words[3] = (uint32_t)even;
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  for (int i = 0; i < 2; ++i)
    numbers[i] = (double)((int32_t)(2 * (words[i] >> 8) + 1) - (1 << 24)) * 0x1p-24;
}

/* Of a normal number in (0, 1): e log(2) + 2 artanh((m - 1) / (m + 1)) of m 2^e, m in [0.7, 1.4]. */
static double logarithm(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int exponent = (int)(bits >> 52) - 1022;
  bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FE0000000000000);
  memcpy(&x, &bits, sizeof x);
  if (x < 0.70710678118654752440) {
    x *= 2;
    exponent -= 1;
  }
  const double t = (x - 1) / (x + 1), square = t * t;
  double sum = 0;
  for (int n = 23; n > 0; n -= 2)
    sum = sum * square + 1.0 / n;
  return exponent * 0.69314718055994530942 + 2 * t * sum;
}

/* By Newton's method, from half the exponent. */
static double root(double x) {
  uint64_t bits;
  double y;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits >> 1) + (UINT64_C(1023) << 51);
  memcpy(&y, &bits, sizeof y);
  for (int i = 0; i < 5; ++i)
    y = 0.5 * (y + x / y);
  return y;
}

static double normal(const kiln_computed_t *computed, uint64_t index) {
  double at[2], square;
  uint32_t attempt = 0;
  do {
    draw(computed, index, attempt++, at);
    square = at[0] * at[0] + at[1] * at[1];
  } while (square >= 1);
  return at[0] * root(-2 * logarithm(square) / square);
}

static void read_initial(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_computed_t *computed = tensor->parts;
  double numbers[2];
  for (size_t i = 0; i < count; ++i)
    if (computed->kind == KILN_INITIAL_CONSTANT) {
      to[i] = computed->number;
    } else if (computed->kind == KILN_INITIAL_NORMAL) {
      to[i] = (float)(computed->number * normal(computed, first + i));
    } else {
      draw(computed, first + i, 0, numbers);
      to[i] = (float)(computed->number * numbers[0]);
    }
}

static const kiln_form_t initial_form = {read_initial, NULL, NULL};

static void describe_initial(const kiln_weight_t *weight, uint64_t digest, uint64_t seed, kiln_computed_t *computed) {
  *computed = (kiln_computed_t){digest, seed, 0, weight->initial};
  memcpy(&computed->number, &weight->initial_number, sizeof computed->number);
}

kiln_status_t kiln_initialise_weights(kiln_model_t *model, uint64_t seed, kiln_error_t *error) {
  if (!model)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "initialise_weights: no model; expected one, got null");
  return kiln_bind_computed(model, &initial_form, describe_initial, seed, error);
}
