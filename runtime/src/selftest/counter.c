// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights and inputs for self-tests and benchmarks. Weights are computed as they are read, so that a model of any
 * size needs no additional memory. */
#include "selftest/counter.h"

#include "core/run.h"
#include "core/selftest.h"
#include "readers/files.h"
#include "weights/computed.h"
#include "weights/convert.h"
#include "weights/pack.h"

#include <string.h>

static void read_counter(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const kiln_computed_t *computed = tensor->parts;
  for (size_t i = 0; i < count; ++i)
    to[i] = kiln_selftest_weight(computed->key, first + i, tensor->rank, computed->number);
}

static const kiln_form_t counter_form = {read_counter, NULL, NULL};

static void describe_counter(const kiln_weight_t *weight, uint64_t digest, uint64_t seed, kiln_computed_t *computed) {
  (void)seed;
  computed->key = digest;
  computed->number =
      kiln_selftest_scale(kiln_elements_except(weight, weight->rank), weight->rank ? (uint64_t)weight->shape[0] : 1);
}

kiln_status_t kiln_bind_counter(kiln_model_t *model, kiln_error_t *error) {
  return kiln_bind_computed(model, &counter_form, describe_counter, 0, error);
}

void kiln_counter_fill(const kiln_argument_t *argument, const int64_t *extents, uint64_t seed, void *to,
                       uint64_t count) {
  const uint64_t key = kiln_selftest_digest(seed, argument->name, strlen(argument->name));
  const int64_t minimum = argument->is_checked ? argument->minimum : 1,
                limit = argument->is_checked ? kiln_extent_value(&argument->limit, extents) : 10;
  const size_t bytes = (size_t)kiln_safetensors_stored_bytes(argument->dtype, 1);
  for (uint64_t i = 0; i < count; ++i) {
    const float number = kiln_selftest_float(key, i);
    if (kiln_convert_is_float(argument->dtype))
      kiln_convert_narrow((char *)to + i * bytes, &number, 1, argument->dtype);
    else if (argument->dtype == KILN_I32)
      ((int32_t *)to)[i] = (int32_t)kiln_selftest_integer(key, i, minimum, limit);
    else if (argument->dtype == KILN_I8)
      ((int8_t *)to)[i] = (int8_t)kiln_selftest_integer(key, i, -100, 101);
    else
      ((uint8_t *)to)[i] = (uint8_t)kiln_selftest_integer(key, i, 0, 2);
  }
}
