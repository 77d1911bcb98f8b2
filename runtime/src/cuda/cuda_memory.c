// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* GPU memory outside of calls: packed weights and caller-requested allocations. Copies use the model's own stream,
 * never the legacy stream, which synchronises with all others, and are complete when the function returns. */
#include "cuda/cuda_model.h"

kiln_status_t kiln_cuda_allocate(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  kiln_cuda_address_t address = 0;
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  status = KILN_CUDA_CALL(cuda, error, cuMemAlloc_v2, &address, bytes ? (size_t)bytes : 1);
  kiln_cuda_leave(cuda);
  *memory = kiln_cuda_pointer(address); /* 256-byte aligned according to the driver's manual */
  return status;
}

void kiln_cuda_release(const kiln_model_t *model, void *memory) {
  kiln_cuda_t *cuda = model->device;
  if (!memory || kiln_cuda_enter(cuda, NULL))
    return;
  cuda->driver.cuMemFree_v2(kiln_cuda_address(memory));
  kiln_cuda_leave(cuda);
}

static kiln_status_t enqueue(kiln_cuda_t *cuda, kiln_copy_t kind, void *to, const void *from, size_t bytes,
                             kiln_error_t *error) {
  const kiln_cuda_address_t target = kiln_cuda_address(to), source = kiln_cuda_address(from);
  if (bytes == 0)
    return KILN_OK;
  switch (kind) {
  case KILN_COPY_IN:
    return KILN_CUDA_CALL(cuda, error, cuMemcpyHtoDAsync_v2, target, from, bytes, cuda->stream);
  case KILN_COPY_OUT:
    return KILN_CUDA_CALL(cuda, error, cuMemcpyDtoHAsync_v2, to, source, bytes, cuda->stream);
  case KILN_COPY_WITHIN:
    return KILN_CUDA_CALL(cuda, error, cuMemcpyDtoDAsync_v2, target, source, bytes, cuda->stream);
  case KILN_COPY_ZEROS:
    break;
  }
  return KILN_CUDA_CALL(cuda, error, cuMemsetD8Async, target, 0, bytes, cuda->stream);
}

kiln_status_t kiln_cuda_copy(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                             kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  status = enqueue(cuda, kind, to, from, (size_t)bytes, error);
  /* Synchronises after a failure, too, since the caller may then free its memory. */
  kiln_status_t done = KILN_CUDA_CALL(cuda, status ? NULL : error, cuStreamSynchronize, cuda->stream);
  kiln_cuda_leave(cuda);
  return status ? status : done;
}

kiln_status_t kiln_cuda_bind(kiln_model_t *model, const char *packed, kiln_error_t *error) {
  void *memory;
  kiln_status_t status = kiln_cuda_allocate(model, model->variant->packed_bytes, &memory, error);
  if (status)
    return status;
  if ((status = kiln_cuda_copy(model, KILN_COPY_IN, memory, packed, model->variant->packed_bytes, error))) {
    kiln_cuda_release(model, memory);
    return status;
  }
  kiln_cuda_release(model, model->packed);
  model->packed = memory;
  return kiln_error_clear(error);
}

kiln_status_t kiln_cuda_allocate_staging(const kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  uint64_t bytes = 0;
  void *memory = NULL;
  for (uint32_t i = 0; i < model->descriptor->entry_count; ++i)
    if (model->variant->bodies[i].staging_bytes > bytes)
      bytes = model->variant->bodies[i].staging_bytes;
  if (bytes == 0 || cuda->staged)
    return KILN_OK;
  kiln_status_t status = KILN_CUDA_CALL(cuda, error, cuMemHostAlloc, &memory, (size_t)bytes, 0);
  cuda->staged = memory;
  return status;
}
