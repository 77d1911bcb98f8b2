// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The life cycle of a model: chooses the code for this CPU, stores the allocator and the packed weights, releases
 * them. */
#include "core/instance.h"
#include "core/sharding.h"
#include "os/aligned.h"

#include <string.h>

static void *allocate_default(void *self, size_t bytes, size_t alignment) {
  (void)self;
  return kiln_aligned_allocate(alignment, bytes);
}

static void release_default(void *self, void *memory) {
  (void)self;
  kiln_aligned_free(memory);
}

kiln_status_t kiln_memory_allocate(const kiln_allocator_t *allocator, uint64_t bytes, const char *what, void **memory,
                                   kiln_error_t *error) {
  /* aligned_alloc requires a multiple of the alignment; zero bytes are rounded up, too. */
  uint64_t rounded = KILN_ARENA_ROUND(bytes ? bytes : 1);
  *memory = NULL;
  if (rounded >= bytes && rounded <= SIZE_MAX)
    *memory = allocator->allocate(allocator->self, (size_t)rounded, KILN_ARENA_ALIGNMENT);
  if (!*memory)
    return kiln_error_set(error, KILN_OUT_OF_MEMORY, "%s: no memory; expected %llu bytes", what,
                          (unsigned long long)rounded);
  if ((uintptr_t)*memory % KILN_ARENA_ALIGNMENT != 0) {
    allocator->release(allocator->self, *memory);
    *memory = NULL;
    return kiln_error_set(error, KILN_INVALID_ARGUMENT, "allocator: wrong alignment; expected %d, got less",
                          KILN_ARENA_ALIGNMENT);
  }
  return KILN_OK;
}

kiln_status_t kiln_packed_allocate(const kiln_model_t *model, char **packed, kiln_packed_t *kind, kiln_error_t *error) {
  uint64_t bytes = model->role.packed_bytes;
  void *memory;
  kiln_status_t status;
  /* Fresh pages are already zero. */
  if (model->allocator.allocate == allocate_default && bytes > 0 && bytes <= SIZE_MAX &&
      (*packed = kiln_pages_allocate((size_t)bytes))) {
    *kind = KILN_PACKED_PAGES;
    return KILN_OK;
  }
  *packed = NULL;
  *kind = KILN_PACKED_ALLOCATED;
  if ((status = kiln_memory_allocate(&model->allocator, bytes, "the packed weights", &memory, error)))
    return status;
  *packed = memset(memory, 0, (size_t)bytes);
  return KILN_OK;
}

bool kiln_packed_is_written(const kiln_model_t *model) {
  for (uint32_t i = 0; i < model->descriptor->weight_count; ++i)
    if (model->descriptor->weights[i].flags & KILN_WEIGHT_VARIABLE)
      return !model->variant->backend;
  return false;
}

void kiln_packed_release(const kiln_model_t *model, char *packed, kiln_packed_t kind) {
  const size_t head = kind == KILN_PACKED_FILE ? KILN_PACKED_HEAD_BYTES : 0;
  if (!packed || kind == KILN_PACKED_EMBEDDED)
    return;
  if (kind == KILN_PACKED_ALLOCATED)
    model->allocator.release(model->allocator.self, packed);
  else
    kiln_pages_release(packed - head, head + (size_t)model->role.packed_bytes);
}

kiln_status_t kiln_packed_replace(kiln_model_t *model, char *packed, kiln_packed_t kind, kiln_error_t *error) {
  if (model->variant->backend) {
    kiln_status_t status = model->variant->backend->bind(model, packed, error);
    kiln_packed_release(model, packed, kind);
    return status;
  }
  kiln_packed_release(model, model->packed, model->packed_kind);
  model->packed = packed;
  model->packed_kind = kind;
  return kiln_error_clear(error);
}

/* Sets model->variant to the first one that runs on this machine. */
static kiln_status_t choose_variant(kiln_model_t *model, uint64_t features, const kiln_options_t *options,
                                    kiln_error_t *error) {
  const kiln_descriptor_t *descriptor = model->descriptor;
  const char *wanted = "none";
  kiln_status_t status = KILN_OK;
  for (uint32_t i = 0; i < descriptor->variant_count; ++i) {
    const kiln_variant_t *variant = model->variant = &descriptor->variants[i];
    if (variant->backend) {
      if (options->device != KILN_CPU && (status = variant->backend->create(model, options, error)) != KILN_NO_DEVICE)
        return status;
    } else if (options->device != KILN_CUDA && variant->memory_space == KILN_MEMORY_HOST) {
      wanted = variant->target;
      if (!(variant->features & ~features))
        return kiln_error_clear(error);
    }
  }
  if (status) /* a device's status, with a message */
    return status;
  if (options->device == KILN_CUDA)
    return kiln_error_set(error, KILN_NO_DEVICE, "model \"%.*s\": not for a GPU; expected a target cuda",
                          KILN_NAME_SHOWN, descriptor->name);
  return kiln_error_set(error, KILN_UNSUPPORTED_CPU, "model \"%.*s\": unsupported CPU; expected level %s, got %s",
                        KILN_NAME_SHOWN, descriptor->name, wanted, kiln_cpu_text(features));
}

/* Sets the role for the chosen variant. */
static kiln_model_t *take_stage_role(kiln_model_t *model) {
  model->role = (kiln_stage_role_t){.bodies = model->variant->bodies,
                                    .placements = model->variant->placements,
                                    .packed_bytes = model->variant->packed_bytes};
  if (model->descriptor->sharding)
    model->descriptor->sharding->take_stage_role(model);
  return model;
}

kiln_status_t kiln_model_create(const kiln_descriptor_t *descriptor, const kiln_cpu_t *cpu,
                                const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error) {
  const kiln_allocator_t standard = {NULL, allocate_default, release_default};
  const kiln_allocator_t *allocator = options->allocator ? options->allocator : &standard;
  void *memory;
  kiln_status_t status;
  if (!model)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "create: null given; expected a place for the model");
  *model = NULL;
  if (!allocator->allocate || !allocator->release)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "allocator: null function; expected %s",
                          allocator->allocate ? "release" : "allocate");
  if (descriptor->abi_version != KILN_ABI_VERSION)
    return kiln_error_set(error, KILN_INTERNAL_ERROR, "model \"%.*s\": wrong runtime version; expected %u, got %d",
                          KILN_NAME_SHOWN, descriptor->name, descriptor->abi_version, KILN_ABI_VERSION);
  if ((status = kiln_memory_allocate(allocator, sizeof(kiln_model_t), "the model", &memory, error)))
    return status;
  kiln_model_t *made = memory;
  *made = (kiln_model_t){
      .descriptor = descriptor, .allocator = *allocator, .copies_files = options->flags & KILN_COPY_FILES};
  if ((descriptor->sharding && (status = descriptor->sharding->create(made, options, error))) ||
      (status = choose_variant(made, kiln_cpu_features(cpu), options, error)))
    allocator->release(allocator->self, made);
  else
    *model = take_stage_role(made);
  return status;
}

void kiln_destroy(kiln_model_t *model) {
  if (!model)
    return;
  const kiln_allocator_t allocator = model->allocator;
  if (model->variant->backend)
    model->variant->backend->destroy(model);
  else
    kiln_packed_release(model, model->packed, model->packed_kind);
  allocator.release(allocator.self, model);
}
