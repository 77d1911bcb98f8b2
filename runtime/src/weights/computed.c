// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds weights that no file contains: elements are computed as they are packed, so that a model of any size needs
 * no additional memory. */
#include "weights/computed.h"
#include "core/instance.h"
#include "core/selftest.h"
#include "core/sharding.h"
#include "weights/bind.h"

#include <string.h>

/* Whether an earlier weight refers to the same tensor, which is then packed twice. */
static bool is_known(const kiln_descriptor_t *descriptor, uint32_t index) {
  for (uint32_t i = 0; i < index; ++i)
    if (strcmp(descriptor->weights[i].name, descriptor->weights[index].name) == 0)
      return true;
  return false;
}

/* Adds the tensor of a copy and writes its name to `name`. Returns the place of the next name. */
static char *add(kiln_tensors_t *table, kiln_computed_t *computed, const kiln_weight_t *weight, uint32_t copy,
                 const kiln_form_t *form, char *name) {
  kiln_tensor_t *tensor = &table->tensors[table->count++];
  kiln_name_t parts;
  *tensor = (kiln_tensor_t){.name = name, .rank = weight->rank, .dtype = KILN_F32, .form = form, .parts = computed};
  for (uint32_t d = 0; d < weight->rank; ++d)
    tensor->shape[d] = weight->shape[d];
  kiln_weight_name(weight, copy, &parts);
  for (int i = 0; i < 3; ++i) {
    memcpy(name, parts.parts[i], parts.lengths[i]);
    name += parts.lengths[i];
  }
  tensor->name_length = (size_t)(name - tensor->name);
  return name;
}

kiln_status_t kiln_bind_computed(kiln_model_t *model, const kiln_form_t *form, kiln_describe_t describe, uint64_t seed,
                                 kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  uint64_t count = 0, bytes = 0;
  kiln_weight_t room;
  kiln_name_t parts;
  void *memory;
  for (uint32_t i = 0; i < descriptor->weight_count; ++i) {
    count += descriptor->weights[i].copies;
    bytes += descriptor->weights[i].copies * (strlen(descriptor->weights[i].name) + sizeof parts.digits);
  }
  bytes += count * (sizeof(kiln_tensor_t) + sizeof(kiln_computed_t));
  kiln_status_t status = kiln_memory_allocate(&model->allocator, bytes, "names of the weights", &memory, error);
  if (status)
    return status;
  kiln_tensors_t table = {memory, 0};
  kiln_computed_t *computed = (kiln_computed_t *)(void *)(table.tensors + count);
  char *name = (char *)(computed + count);
  for (uint32_t i = 0; i < descriptor->weight_count; ++i)
    for (uint32_t copy = 0; copy < descriptor->weights[i].copies && !is_known(descriptor, i); ++copy) {
      const kiln_weight_t *weight = kiln_whole_weight(descriptor, i, &room);
      char *next = add(&table, computed, weight, copy, form, name);
      describe(weight, kiln_selftest_digest(0, name, (size_t)(next - name)), seed, computed++);
      name = next;
    }
  if (!(status = kiln_tensors_sort_by_name(&table, "table of weights", error)))
    status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
}
