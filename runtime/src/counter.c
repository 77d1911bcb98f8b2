// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights and inputs for self-tests and timings. Weights are computed as they are read, so that a model of any size
 * needs no more memory than it has. */
#include "selftest.h"

#include "internal.h"

#include <string.h>

/* The parts of a tensor with this form. */
typedef struct counter_t {
  uint64_t key;
  float scale;
} counter_t;

static void read_counter(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count) {
  const counter_t *counter = tensor->parts;
  for (size_t i = 0; i < count; ++i)
    to[i] = kiln_selftest_weight(counter->key, first + i, tensor->rank, counter->scale);
}

static const kiln_form_t counter_form = {read_counter, NULL, NULL};

/* Whether an earlier weight is of the same tensor: one that is packed twice. */
static bool is_known(const kiln_descriptor_t *descriptor, uint32_t index) {
  for (uint32_t i = 0; i < index; ++i)
    if (strcmp(descriptor->weights[i].name, descriptor->weights[index].name) == 0)
      return true;
  return false;
}

/* Adds the tensor of a copy; its name goes to `name`. Returns where the next one goes. */
static char *add(kiln_tensors_t *table, counter_t *counters, const kiln_weight_t *weight, uint32_t copy, char *name) {
  kiln_tensor_t *tensor = &table->tensors[table->count];
  counter_t *counter = &counters[table->count++];
  kiln_name_t parts;
  uint64_t elements = 1;
  *tensor =
      (kiln_tensor_t){.name = name, .rank = weight->rank, .dtype = KILN_F32, .form = &counter_form, .parts = counter};
  for (uint32_t d = 0; d < weight->rank; ++d)
    elements *= (uint64_t)(tensor->shape[d] = weight->shape[d]);
  kiln_weight_name(weight, copy, &parts);
  for (int i = 0; i < 3; ++i) {
    memcpy(name, parts.parts[i], parts.lengths[i]);
    name += parts.lengths[i];
  }
  tensor->name_length = (size_t)(name - tensor->name);
  *counter = (counter_t){kiln_selftest_digest(0, tensor->name, tensor->name_length),
                         kiln_selftest_scale(elements, weight->rank ? (uint64_t)weight->shape[0] : 1)};
  return name;
}

kiln_status_t kiln_bind_counter(kiln_model_t *model, kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  uint64_t count = 0, bytes = 0;
  kiln_weight_t room;
  kiln_name_t parts;
  void *memory;
  for (uint32_t i = 0; i < descriptor->weight_count; ++i) {
    count += descriptor->weights[i].copies;
    bytes += descriptor->weights[i].copies * (strlen(descriptor->weights[i].name) + sizeof parts.digits);
  }
  bytes += count * (sizeof(kiln_tensor_t) + sizeof(counter_t));
  kiln_status_t status = kiln_memory_allocate(&model->allocator, bytes, "names of the weights", &memory, error);
  if (status)
    return status;
  kiln_tensors_t table = {memory, 0};
  counter_t *counters = (counter_t *)(void *)(table.tensors + count);
  char *name = (char *)(counters + count);
  for (uint32_t i = 0; i < descriptor->weight_count; ++i)
    for (uint32_t copy = 0; copy < descriptor->weights[i].copies && !is_known(descriptor, i); ++copy)
      name = add(&table, counters, kiln_whole_weight(descriptor, i, &room), copy, name);
  if (!(status = kiln_tensors_sort_by_name(&table, "table of weights", error)))
    status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
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
