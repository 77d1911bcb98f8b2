// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What a program with a choice of devices calls: a model made with options, and memory where its arena lies, which is
 * the host's unless the variant has a backend. */
#include "internal.h"

#include <string.h>

/* Of a library that is not for several. */
static kiln_status_t check_alone(const char *member, uint32_t number, uint32_t count, kiln_error_t *error) {
  if (kiln_descriptor.sharding || (count <= 1 && number == 0))
    return KILN_OK;
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "create_on requires %s 0 of a library that is not for several %ss, got %s %u of %u", member,
                        member, member, number, count);
}

/* Options of a later version, or an uninitialised struct. */
static kiln_status_t check_options(const kiln_options_t *options, kiln_error_t *error) {
  kiln_status_t status;
  if (!options)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "create_on requires options, got null");
  if ((unsigned)options->device > KILN_CUDA)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "create_on requires a device from %d to %d, got %d",
                          KILN_ANY_DEVICE, KILN_CUDA, (int)options->device);
  if (options->flags & ~(uintptr_t)(KILN_LOAD_KERNELS_AT_CREATE | KILN_COPY_FILES))
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "create_on requires flags of %d, %d or both, got %llu",
                          KILN_LOAD_KERNELS_AT_CREATE, KILN_COPY_FILES, (unsigned long long)options->flags);
  if ((status = check_alone("rank", options->rank, options->ranks, error)) ||
      (status = check_alone("stage", options->stage, options->stages, error)))
    return status;
  for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; ++i)
    if (options->reserved[i])
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "create_on requires that the reserved options are null, got a pointer in field " KILN_SIZE,
                            i);
  return KILN_OK;
}

kiln_status_t kiln_create_on(const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error) {
  const kiln_cpu_t cpu = kiln_cpu_detect();
  kiln_status_t status = check_options(options, error);
  if (model)
    *model = NULL;
  return status ? status : kiln_model_create(&kiln_descriptor, &cpu, options, model, error);
}

kiln_device_t kiln_device(const kiln_model_t *model) {
  if (!model)
    return KILN_ANY_DEVICE;
  return model->variant->backend ? model->variant->backend->kind : KILN_CPU;
}

const char *kiln_target(const kiln_model_t *model) { return model ? model->variant->target : ""; }

kiln_status_t kiln_allocate_memory(const kiln_model_t *model, size_t bytes, void **memory, kiln_error_t *error) {
  if (!model || !memory)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "allocate_memory requires %s, got null",
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
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "copies to and from memory require %s, got null",
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

static kiln_status_t begin(const kiln_model_t *model, void *arena, bool is_training, kiln_error_t *error) {
  const char *function = is_training ? "begin_training" : "begin_session";
  if (!model || !arena)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s requires %s, got null", function,
                          model ? "an arena" : "a model");
  const kiln_descriptor_t *descriptor = model->descriptor;
  const uint64_t bytes = is_training ? descriptor->training_bytes : descriptor->state_bytes;
  const kiln_status_t status = kiln_zero_memory(model, arena, (size_t)bytes, error);
  if (!status && bytes > 0 && !model->variant->backend)
    kiln_mark_kept(model, arena, KILN_KEEPS_STATES | (is_training ? KILN_KEEPS_MOMENTS : 0));
  return status;
}

kiln_status_t kiln_begin_session(const kiln_model_t *model, void *arena, kiln_error_t *error) {
  return begin(model, arena, false, error);
}

kiln_status_t kiln_begin_training(const kiln_model_t *model, void *arena, kiln_error_t *error) {
  return begin(model, arena, true, error);
}
