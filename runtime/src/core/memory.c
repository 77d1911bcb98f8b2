// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Memory in the model's memory space, which is the host's unless the variant has a backend. */
#include "core/instance.h"

#include <string.h>

kiln_status_t kiln_allocate_memory(const kiln_model_t *model, size_t bytes, void **memory, kiln_error_t *error) {
  if (!model || !memory)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "allocate_memory: null given; expected %s",
                          model ? "a place for the memory" : "a model");
  const kiln_backend_t *backend = model->variant->backend;
  *memory = NULL;
  kiln_status_t status = backend ? backend->allocate(model, bytes, memory, error)
                                 : kiln_memory_allocate(&model->allocator, bytes, "memory of a model", memory, error);
  return status ? status : kiln_error_clear(error);
}

void kiln_release_memory(const kiln_model_t *model, void *memory) {
  if (!model || !memory)
    return;
  if (model->variant->backend)
    model->variant->backend->release(model, memory);
  else
    model->allocator.release(model->allocator.self, memory);
}

static kiln_status_t copy(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, size_t bytes,
                          kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  if (!model || !to || (!from && kind != KILN_COPY_ZEROS))
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "copy of memory: null given; expected %s",
                          model ? "two addresses" : "a model");
  if (model->variant->backend)
    status = model->variant->backend->copy(model, kind, to, from, bytes, error);
  else if (kind == KILN_COPY_ZEROS)
    memset(to, 0, bytes);
  else
    memcpy(to, from, bytes);
  return status ? status : kiln_error_clear(error);
}

kiln_status_t kiln_copy_to_memory(const kiln_model_t *model, void *to, const void *from_host, size_t bytes,
                                  kiln_error_t *error) {
  return copy(model, KILN_COPY_IN, to, from_host, bytes, error);
}

kiln_status_t kiln_copy_from_memory(const kiln_model_t *model, void *to_host, const void *from, size_t bytes,
                                    kiln_error_t *error) {
  return copy(model, KILN_COPY_OUT, to_host, from, bytes, error);
}

kiln_status_t kiln_copy_memory(const kiln_model_t *model, void *to, const void *from, size_t bytes,
                               kiln_error_t *error) {
  return copy(model, KILN_COPY_WITHIN, to, from, bytes, error);
}

kiln_status_t kiln_zero_memory(const kiln_model_t *model, void *memory, size_t bytes, kiln_error_t *error) {
  return copy(model, KILN_COPY_ZEROS, memory, NULL, bytes, error);
}
