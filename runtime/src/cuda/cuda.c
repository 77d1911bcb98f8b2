// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A model on a GPU: finds driver and device, uses the device's primary context or the caller's, and stores data
 * there that all calls share. The context is current in a thread only within a function of the model. */
#include "cuda/cuda_model.h"

#include <string.h>

kiln_status_t kiln_cuda_check(kiln_cuda_t *cuda, int result, const char *symbol, kiln_error_t *error) {
  if (result == 0)
    return KILN_OK;
  kiln_status_t status = result == KILN_CUDA_OUT_OF_MEMORY ? KILN_OUT_OF_MEMORY : KILN_DEVICE_ERROR;
  if (kiln_cuda_error_is_final(result)) {
    atomic_store(&cuda->is_lost, true);
    status = KILN_DEVICE_LOST;
  }
  return kiln_error_set(error, status, "%s: call failed; expected success, got %s (%d): %s", symbol,
                        kiln_cuda_error_name(&cuda->driver, result), result,
                        kiln_cuda_error_text(&cuda->driver, result));
}

kiln_status_t kiln_cuda_enter(kiln_cuda_t *cuda, kiln_error_t *error) {
  if (atomic_load(&cuda->is_lost))
    return kiln_error_set(error, KILN_DEVICE_LOST, "CUDA context: ended by an error; expected one that works");
  return KILN_CUDA_CALL(cuda, error, cuCtxPushCurrent_v2, cuda->context);
}

void kiln_cuda_leave(kiln_cuda_t *cuda) {
  kiln_cuda_context_t context;
  cuda->driver.cuCtxPopCurrent_v2(&context);
}

/* Uses the caller's context, or the device that the options name. */
static kiln_status_t find_device(kiln_cuda_t *cuda, const kiln_options_t *options, kiln_error_t *error) {
  int count = 0, major = 0, minor = 0, version = 0;
  kiln_status_t status;
  if (options->context) {
    cuda->context = options->context;
    if ((status = kiln_cuda_enter(cuda, error)))
      return status;
    status = KILN_CUDA_CALL(cuda, error, cuCtxGetDevice, &cuda->device);
    kiln_cuda_leave(cuda);
  } else {
    if ((status = KILN_CUDA_CALL(cuda, error, cuDeviceGetCount, &count)))
      return status;
    if (options->ordinal < 0 || options->ordinal >= count)
      return kiln_error_set(error, KILN_NO_DEVICE,
                            "GPU: wrong ordinal; expected one that the driver knows, got %d and %d GPUs",
                            (int)options->ordinal, count);
    status = KILN_CUDA_CALL(cuda, error, cuDeviceGet, &cuda->device, options->ordinal);
  }
  if (status ||
      (status = KILN_CUDA_CALL(cuda, error, cuDeviceGetAttribute, &major, KILN_CUDA_CAPABILITY_MAJOR, cuda->device)) ||
      (status = KILN_CUDA_CALL(cuda, error, cuDeviceGetAttribute, &minor, KILN_CUDA_CAPABILITY_MINOR, cuda->device)) ||
      (status = KILN_CUDA_CALL(cuda, error, cuDriverGetVersion, &version)))
    return status;
  cuda->capability = (uint32_t)(major * 10 + minor);
  cuda->has_dependent_launch = version >= KILN_CUDA_DEPENDENT_LAUNCH_VERSION && cuda->driver.cuLaunchKernelEx;
  return KILN_OK;
}

static kiln_status_t take_context(kiln_cuda_t *cuda, kiln_error_t *error) {
  if (cuda->context)
    return KILN_OK;
  kiln_status_t status = KILN_CUDA_CALL(cuda, error, cuDevicePrimaryCtxRetain, &cuda->context, cuda->device);
  cuda->is_primary = !status;
  return status;
}

static kiln_status_t place_constants(const kiln_model_t *model, kiln_cuda_t *cuda, kiln_error_t *error) {
  const kiln_variant_t *variant = model->variant;
  kiln_status_t status;
  if (variant->constant_bytes == 0)
    return KILN_OK;
  if ((status = KILN_CUDA_CALL(cuda, error, cuMemAlloc_v2, &cuda->constants, (size_t)variant->constant_bytes)) ||
      (status = KILN_CUDA_CALL(cuda, error, cuMemcpyHtoDAsync_v2, cuda->constants, variant->constants,
                               (size_t)variant->constant_bytes, cuda->stream)))
    return status;
  return KILN_CUDA_CALL(cuda, error, cuStreamSynchronize, cuda->stream);
}

/* The part of the initialisation that needs the context. */
static kiln_status_t fill(const kiln_model_t *model, kiln_cuda_t *cuda, const kiln_options_t *options,
                          kiln_error_t *error) {
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  if (!(status = KILN_CUDA_CALL(cuda, error, cuStreamCreate, &cuda->stream, KILN_CUDA_NON_BLOCKING)) &&
      !(status = place_constants(model, cuda, error)) && options->flags & KILN_LOAD_KERNELS_AT_CREATE &&
      !(status = kiln_cuda_allocate_staging(model, error)))
    status = kiln_cuda_kernels_load(cuda, error);
  kiln_cuda_leave(cuda);
  return status;
}

/* Allocates one block for the state, the hash table and the addresses of an entry's arguments. */
static kiln_status_t allocate_state(kiln_model_t *model, kiln_error_t *error) {
  const uint64_t state = KILN_ARENA_ROUND(sizeof(kiln_cuda_t));
  const uint64_t kernels = KILN_ARENA_ROUND(kiln_cuda_kernels_bytes(model->variant));
  uint64_t arguments = 0;
  void *memory;
  for (uint32_t i = 0; i < model->descriptor->entry_count; ++i)
    if (model->descriptor->entries[i].argument_count > arguments)
      arguments = model->descriptor->entries[i].argument_count;
  const uint64_t bytes = state + kernels + arguments * sizeof(void *);
  kiln_status_t status = kiln_memory_allocate(&model->allocator, bytes, "the model's state on a GPU", &memory, error);
  if (status)
    return status;
  memset(memory, 0, (size_t)bytes);
  kiln_cuda_t *cuda = model->device = memory;
  atomic_init(&cuda->is_lost, false);
  atomic_init(&cuda->assembling, 0);
  pthread_mutex_init(&cuda->loading, NULL);
  pthread_mutex_init(&cuda->staging, NULL);
  kiln_cuda_kernels_init(cuda, model->variant, (char *)memory + state);
  cuda->placed = (void **)(void *)((char *)memory + state + kernels);
  return KILN_OK;
}

/* Releases the objects of the context. Errors are ignored: if the context is lost, nothing else can be freed. */
static void empty_context(kiln_model_t *model, kiln_cuda_t *cuda) {
  if (cuda->stream) {
    cuda->driver.cuStreamSynchronize(cuda->stream);
    cuda->driver.cuStreamDestroy_v2(cuda->stream);
  }
  if (cuda->recorder)
    cuda->recorder->empty(cuda);
  kiln_cuda_kernels_unload(cuda);
  if (model->packed)
    cuda->driver.cuMemFree_v2(kiln_cuda_address(model->packed));
  if (cuda->constants)
    cuda->driver.cuMemFree_v2(cuda->constants);
  if (cuda->staged)
    cuda->driver.cuMemFreeHost(cuda->staged);
}

static void destroy(kiln_model_t *model) {
  kiln_cuda_t *cuda = model->device;
  if (cuda->context && cuda->driver.cuCtxPushCurrent_v2(cuda->context) == 0) {
    empty_context(model, cuda);
    kiln_cuda_leave(cuda);
  }
  if (cuda->is_primary)
    cuda->driver.cuDevicePrimaryCtxRelease_v2(cuda->device);
  kiln_cuda_driver_close(&cuda->driver);
  pthread_mutex_destroy(&cuda->loading);
  pthread_mutex_destroy(&cuda->staging);
  if (cuda->recorder)
    model->allocator.release(model->allocator.self, cuda->recorder);
  if (cuda->image)
    model->allocator.release(model->allocator.self, cuda->image);
  model->allocator.release(model->allocator.self, cuda);
  model->device = NULL;
  model->packed = NULL;
}

static kiln_status_t create(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error) {
  kiln_status_t status = allocate_state(model, error);
  if (status)
    return status;
  kiln_cuda_t *cuda = model->device;
  if ((status = kiln_cuda_driver_open(&cuda->driver, error)) || (status = find_device(cuda, options, error)) ||
      (status = kiln_cuda_kernels_check(cuda, model, error)) || (status = take_context(cuda, error)) ||
      (status = fill(model, cuda, options, error))) {
    destroy(model);
    return status;
  }
  return kiln_error_clear(error);
}

const kiln_backend_t kiln_cuda_backend = {
    .kind = KILN_CUDA,
    .create = create,
    .destroy = destroy,
    .bind = kiln_cuda_bind,
    .allocate = kiln_cuda_allocate,
    .release = kiln_cuda_release,
    .copy = kiln_cuda_copy,
    .run = kiln_cuda_run,
};
