// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds safetensors files whose tensor names differ from the model's. */
#include "core/instance.h"
#include "published/published.h"
#include "weights/bind.h"
#include "weights/convert.h"

#include <string.h>

/* Checks a tensor that is ignored. */
static kiln_status_t check_zeros(const kiln_tensor_t *tensor, kiln_error_t *error) {
  if (!kiln_convert_is_float(tensor->dtype))
    return kiln_error_set(error, KILN_WEIGHT_TYPE, "tensor \"%.*s\": wrong type; expected F32, F16 or BF16, got %s",
                          kiln_shown(tensor->name_length), tensor->name, kiln_safetensors_dtype_text(tensor->dtype));
  return kiln_rename_check_zeros(tensor, tensor->name, tensor->name_length,
                                 (tensor->end - tensor->begin) / kiln_safetensors_stored_bytes(tensor->dtype, 1),
                                 error);
}

kiln_status_t kiln_renamed(const kiln_tensors_t *stored, const kiln_renames_t *renames,
                           const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error) {
  const kiln_rename_t *rename;
  size_t name_bytes = 0;
  void *memory;
  kiln_status_t status;
  memset(table, 0, sizeof *table);
  for (size_t i = 0; i < stored->count; ++i)
    name_bytes += kiln_rename(renames, stored->tensors[i].name, stored->tensors[i].name_length, &rename, NULL);
  if ((status = kiln_renames_check_fit(renames, kiln_renames_next, stored, error)) ||
      (status = kiln_memory_allocate(allocator, stored->count * sizeof(kiln_tensor_t) + name_bytes,
                                     "an index of the weights", &memory, error)))
    return status;
  table->tensors = memory;
  status = kiln_source_check(stored, error);
  char *name = (char *)(table->tensors + stored->count);
  for (size_t i = 0; !status && i < stored->count; ++i) {
    const kiln_tensor_t *from = &stored->tensors[i];
    kiln_tensor_t tensor = *from;
    tensor.name = name;
    tensor.name_length = kiln_rename(renames, from->name, from->name_length, &rename, name);
    if (rename && !rename->to) {
      status = rename->flags & KILN_RENAME_ZEROS ? check_zeros(from, error) : KILN_OK;
      continue;
    }
    name += tensor.name_length;
    table->tensors[table->count++] = tensor;
  }
  if (status || (status = kiln_tensors_sort_by_name(table, "renamed weight file", error)))
    kiln_tensors_release(table, allocator);
  return status;
}

static kiln_status_t bind_renamed(kiln_model_t *model, kiln_tensors_t *stored, const void *context,
                                  kiln_error_t *error) {
  kiln_tensors_t table;
  kiln_status_t status = kiln_renamed(stored, context, &model->allocator, &table, error);
  if (status)
    return status;
  status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
}

kiln_status_t kiln_bind_weights_renamed(kiln_model_t *model, const char *path, const kiln_rename_t *renames,
                                        size_t count, kiln_error_t *error) {
  const kiln_renames_t names = {renames, count};
  const kiln_status_t status = kiln_renames_check(model, path, &names, false, "bind_weights_renamed", error);
  return status ? status : kiln_checkpoint_take(model, path, bind_renamed, &names, error);
}
