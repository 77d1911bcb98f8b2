// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A call on a GPU. The body runs on the host and enqueues kernels and copies in a stream. With device tensors that
 * is all, so that a caller may capture the call in a graph. Host tensors are copied to the end of the arena before
 * and from there after it, through pinned memory of the model, and the call waits for its stream. */
#include "core/run.h"
#include "core/sharding.h"
#include "cuda/cuda_model.h"
#include "readers/files.h"

#include <string.h>

/* The return value of a body that failed; the stream has the error. */
enum { FAILED = 1 };

static kiln_status_t launch(kiln_cuda_stream_t *stream, const kiln_cuda_form_t *form, uint32_t index,
                            const uint32_t blocks[3], void **parameters) {
  kiln_cuda_t *cuda = stream->cuda;
  const kiln_cuda_function_t *function = &form->module->functions[index];
  kiln_cuda_launch_attribute_t attributes[2];
  unsigned count = 0;
  if (function->cluster > 1)
    attributes[count++] =
        (kiln_cuda_launch_attribute_t){.id = KILN_CUDA_CLUSTER_DIMENSION, .value.cluster = {function->cluster, 1, 1}};
  if (cuda->has_dependent_launch && function->is_dependent_launch &&
      form->module->images[form->image].capability >= KILN_CUDA_DEPENDENT_LAUNCH_CAPABILITY)
    attributes[count++] =
        (kiln_cuda_launch_attribute_t){.id = KILN_CUDA_PROGRAMMATIC_SERIALIZATION, .value.is_dependent_launch = 1};
  if (count == 0)
    return KILN_CUDA_CALL(cuda, &stream->error, cuLaunchKernel, form->functions[index], blocks[0], blocks[1], blocks[2],
                          function->threads, 1, 1, function->shared_bytes, stream->queue, parameters, NULL);
  const kiln_cuda_launch_t launch = {.blocks = {blocks[0], blocks[1], blocks[2]},
                                     .threads = {function->threads, 1, 1},
                                     .shared_bytes = function->shared_bytes,
                                     .stream = stream->queue,
                                     .attributes = attributes,
                                     .attribute_count = count};
  return KILN_CUDA_CALL(cuda, &stream->error, cuLaunchKernelEx, &launch, form->functions[index], parameters, NULL);
}

/* Returns the loaded kernel; null: the call fails. is_function: whether the index is that of a function of the
 * module. */
static const kiln_cuda_kernel_t *prepare(kiln_cuda_stream_t *stream, const kiln_cuda_module_t *module, bool is_function,
                                         uint32_t function) {
  if (stream->error.status)
    return NULL;
  kiln_cuda_kernel_t *kernel = kiln_cuda_kernel_find(stream->cuda, module);
  if (!kernel || !is_function) {
    kiln_error_set(&stream->error, KILN_INTERNAL_ERROR,
                   "launch: unknown function; expected one of the variant's kernels, got %u", function);
    return NULL;
  }
  return kiln_cuda_kernel_load(stream->cuda, kernel, stream->queue, &stream->error) ? NULL : kernel;
}

int kiln_cuda_launch(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks_x,
                     uint32_t blocks_y, uint32_t blocks_z, void **parameters) {
  kiln_cuda_stream_t *stream = worker->cuda;
  const uint32_t blocks[] = {blocks_x, blocks_y, blocks_z};
  if (!stream->error.status && (blocks_x == 0 || blocks_y == 0 || blocks_z == 0)) /* the driver rejects an empty grid */
    return 0;
  const kiln_cuda_kernel_t *kernel = prepare(stream, module, function < module->function_count, function);
  return kernel && !launch(stream, &kernel->forms[KILN_CUDA_PLAIN], function, blocks, parameters) ? 0 : FAILED;
}

/* Encodes a tensor map. False: TMA does not support the tensor: pitches and address must be multiples of 16 bytes,
 * and it must not be empty; or the driver rejects it for another reason. */
static bool encode(const kiln_cuda_t *cuda, const kiln_cuda_map_t *map, char *encoded) {
  static const uint32_t steps[] = {1, 1, 1};
  uint64_t unaligned = (uintptr_t)map->address % 16;
  for (uint32_t i = 0; i < map->rank; ++i)
    unaligned |= (map->extents[i] == 0) | (i ? map->pitches[i - 1] % 16 : 0);
  return !unaligned && !cuda->driver.cuTensorMapEncodeTiled(
                           encoded, (int)map->dtype, map->rank, kiln_cuda_pointer(kiln_cuda_address(map->address)),
                           map->extents, map->pitches, map->box, steps, KILN_CUDA_MAP_PLAIN, KILN_CUDA_MAP_SWIZZLED_128,
                           KILN_CUDA_MAP_L2_128, KILN_CUDA_MAP_ZEROS);
}

int kiln_cuda_launch_tma(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks,
                         uint32_t map_count, const kiln_cuda_map_t *maps, void **parameters) {
  kiln_cuda_stream_t *stream = worker->cuda;
  const kiln_cuda_module_t *tma = module->tma;
  _Alignas(KILN_CUDA_MAP_BYTES) char encoded[KILN_CUDA_MAX_MAPS][KILN_CUDA_MAP_BYTES];
  int most = 0;
  const bool is_function = tma && function < tma->function_count && map_count <= KILN_CUDA_MAX_MAPS;
  const kiln_cuda_kernel_t *kernel = prepare(stream, module, is_function, function);
  if (!kernel)
    return FAILED;
  if (!kernel->forms[KILN_CUDA_TMA].loaded)
    return KILN_CUDA_NO_TMA;
  for (uint32_t i = 0; i < map_count; ++i)
    if (!encode(stream->cuda, &maps[i], encoded[i]))
      return KILN_CUDA_NO_TMA;
  if (KILN_CUDA_CALL(stream->cuda, &stream->error, cuDeviceGetAttribute, &most, KILN_CUDA_MULTIPROCESSORS,
                     stream->cuda->device))
    return FAILED;
  const uint32_t cluster = tma->functions[function].cluster > 1 ? tma->functions[function].cluster : 1;
  const uint32_t wanted = blocks / cluster, at_once = (uint32_t)most / cluster;
  const uint32_t grid[] = {(at_once > 0 && wanted > at_once ? at_once : wanted) * cluster, 1, 1};
  for (uint32_t i = 0; i < map_count; ++i)
    parameters[i] = encoded[i];
  const bool failed = launch(stream, &kernel->forms[KILN_CUDA_TMA], function, grid, parameters);
  for (uint32_t i = 0; i < map_count; ++i)
    parameters[i] = NULL; /* the driver has copied the maps, which this function owns */
  return failed ? FAILED : 0;
}

void kiln_cuda_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                         uint64_t source_stride) {
  kiln_cuda_stream_t *stream = worker->cuda;
  if (stream->error.status || rows == 0 || row_bytes == 0)
    return;
  if (rows == 1 || source_stride == row_bytes) {
    KILN_CUDA_CALL(stream->cuda, &stream->error, cuMemcpyDtoDAsync_v2, kiln_cuda_address(target),
                   kiln_cuda_address(source), (size_t)(rows * row_bytes), stream->queue);
    return;
  }
  const kiln_cuda_copy_2d_t copy = {
      .from = {.memory = KILN_CUDA_MEMORY_OF_DEVICE,
               .device = kiln_cuda_address(source),
               .pitch = (size_t)source_stride},
      .to = {.memory = KILN_CUDA_MEMORY_OF_DEVICE, .device = kiln_cuda_address(target), .pitch = (size_t)row_bytes},
      .width = (size_t)row_bytes,
      .height = (size_t)rows};
  KILN_CUDA_CALL(stream->cuda, &stream->error, cuMemcpy2DAsync_v2, &copy, stream->queue);
}

/* For a traced call: a kernel ends when it has finished on the GPU. */
static void wait_for_kernels(kiln_worker_t *worker) {
  kiln_cuda_stream_t *stream = worker->cuda;
  if (!stream->error.status)
    KILN_CUDA_CALL(stream->cuda, &stream->error, cuStreamSynchronize, stream->queue);
}

kiln_status_t kiln_cuda_run_body(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream,
                                 void *const *arguments) {
  const kiln_model_t *model = request->model;
  const kiln_body_t *body = &model->variant->bodies[request->entry];
  char *scratch = (char *)request->call->arena + KILN_ARENA_ROUND(body->plan_bytes);
  kiln_worker_t worker = {.top = scratch, .end = scratch + KILN_ARENA_ROUND(body->scratch_bytes), .cuda = stream};
  worker.workers = &worker;
  const char *constants = kiln_cuda_pointer(stream->cuda->constants);
  kiln_tracing_t tracing;
  const kiln_frame_t frame = {
      .worker = &worker,
      .weights = model->packed,
      .arena = request->call->arena,
      .extents = request->extents,
      .arguments = arguments,
      .constants = constants,
      .sequences = request->sequences,
      .tracing = kiln_trace_call(&tracing, request->call, &model->descriptor->entries[request->entry])};
  tracing.wait = wait_for_kernels;
  tracing.worker = &worker;
  kiln_error_t error = {KILN_OK, ""};
  const kiln_sharding_t *sharding = model->descriptor->sharding;
  kiln_call_t call = *request->call;
  call.stream = stream->queue;
  call.error = &error;
  kiln_status_t status = sharding ? sharding->run(model, &call, request->entry, &frame)
                                  : kiln_body_run(model, request->entry, &frame, &error);
  if (status && !stream->error.status)
    stream->error = error;
  return stream->error.status;
}

/* Runs the body or its graph. Batched calls, which seldom repeat, traced calls, and calls with collectives, for
 * which a graph would not wait, do not use a graph. */
static kiln_status_t enqueue(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream, void *const *arguments) {
  return stream->cuda->recorder && !request->sequences && !request->call->trace && !request->model->descriptor->sharding
             ? stream->cuda->recorder->run(request, stream, arguments)
             : kiln_cuda_run_body(request, stream, arguments);
}

static uint64_t argument_bytes(const kiln_argument_t *argument, const int64_t *extents) {
  return kiln_safetensors_stored_bytes(argument->dtype, (uint64_t)kiln_argument_elements(argument, extents));
}

/* The location of the arguments after the scratch; the first `inputs` bytes are inputs. */
typedef struct staging_t {
  char *begin;
  uint64_t inputs, bytes;
} staging_t;

/* Lays out the arguments and copies the inputs to the pinned memory. */
static kiln_status_t stage(const kiln_cuda_request_t *request, kiln_cuda_t *cuda, void *const *arguments,
                           staging_t *staging, kiln_error_t *error) {
  const kiln_entry_t *entry = &request->model->descriptor->entries[request->entry];
  const kiln_body_t *body = &request->model->variant->bodies[request->entry];
  *staging = (staging_t){.begin = (char *)request->call->arena + KILN_ARENA_ROUND(body->plan_bytes) +
                                  KILN_ARENA_ROUND(body->scratch_bytes)};
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    const uint64_t bytes = argument_bytes(&entry->arguments[i], request->extents), at = staging->bytes;
    staging->bytes += KILN_ARENA_ROUND(bytes);
    if (staging->bytes > body->staging_bytes)
      return kiln_error_set(error, KILN_INTERNAL_ERROR, "%s: too few argument bytes; expected %llu, got %llu",
                            entry->name, (unsigned long long)staging->bytes, (unsigned long long)body->staging_bytes);
    cuda->placed[i] = staging->begin + at;
    if (!entry->arguments[i].is_output) {
      memcpy(cuda->staged + at, arguments[i], (size_t)bytes);
      staging->inputs = staging->bytes;
    }
  }
  return KILN_OK;
}

static void unstage(const kiln_cuda_request_t *request, const kiln_cuda_t *cuda, const staging_t *staging,
                    void *const *arguments) {
  const kiln_entry_t *entry = &request->model->descriptor->entries[request->entry];
  for (uint32_t i = 0; i < entry->argument_count; ++i)
    if (entry->arguments[i].is_output)
      memcpy(arguments[i], cuda->staged + ((char *)cuda->placed[i] - staging->begin),
             (size_t)argument_bytes(&entry->arguments[i], request->extents));
}

/* Enqueues the copies of the inputs, the body, and the copies of the outputs. */
static kiln_status_t enqueue_staged(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream,
                                    const staging_t *staging) {
  kiln_cuda_t *cuda = stream->cuda;
  kiln_error_t *error = &stream->error;
  const uint64_t outputs = staging->bytes - staging->inputs;
  kiln_status_t status = KILN_OK;
  if (staging->inputs > 0)
    status = KILN_CUDA_CALL(cuda, error, cuMemcpyHtoDAsync_v2, kiln_cuda_address(staging->begin), cuda->staged,
                            (size_t)staging->inputs, stream->queue);
  if (status || (status = enqueue(request, stream, cuda->placed)) || outputs == 0)
    return status;
  return KILN_CUDA_CALL(cuda, error, cuMemcpyDtoHAsync_v2, cuda->staged + staging->inputs,
                        kiln_cuda_address(staging->begin + staging->inputs), (size_t)outputs, stream->queue);
}

/* Requires the lock on the pinned memory. */
static kiln_status_t run_staged(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream,
                                void *const *arguments) {
  kiln_cuda_t *cuda = stream->cuda;
  staging_t staging;
  kiln_status_t status = kiln_cuda_allocate_staging(request->model, &stream->error);
  if (status || (status = stage(request, cuda, arguments, &staging, &stream->error)))
    return status;
  status = enqueue_staged(request, stream, &staging);
  /* Synchronises after a failure, too, since the next call writes to the pinned memory. */
  kiln_status_t done = KILN_CUDA_CALL(cuda, status ? NULL : &stream->error, cuStreamSynchronize, stream->queue);
  if (!status && !(status = done))
    unstage(request, cuda, &staging, arguments);
  return status;
}

/* Runs a call with host tensors. */
static kiln_status_t run_from_host(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream,
                                   void *const *arguments) {
  kiln_cuda_t *cuda = stream->cuda;
  int is_capturing = 0;
  kiln_status_t status = KILN_CUDA_CALL(cuda, &stream->error, cuStreamIsCapturing, stream->queue, &is_capturing);
  if (status)
    return status;
  if (is_capturing)
    return kiln_error_set(&stream->error, KILN_INVALID_ARGUMENT,
                          "%s: wrong memory for a captured stream; expected %d, device pointers, got %d",
                          request->model->descriptor->entries[request->entry].name, KILN_DEVICE_POINTERS,
                          KILN_HOST_POINTERS);
  pthread_mutex_lock(&cuda->staging);
  status = run_staged(request, stream, arguments);
  pthread_mutex_unlock(&cuda->staging);
  return status;
}

kiln_status_t kiln_cuda_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                            const kiln_extents_t *extents, void *const *arguments) {
  kiln_cuda_t *cuda = model->device;
  kiln_status_t status;
  if (call->memory != KILN_HOST_POINTERS && call->memory != KILN_DEVICE_POINTERS)
    return kiln_error_set(call->error, KILN_INVALID_ARGUMENT, "%s: unknown memory; expected %d or %d, got %llu",
                          model->descriptor->entries[entry].name, KILN_HOST_POINTERS, KILN_DEVICE_POINTERS,
                          (unsigned long long)call->memory);
  if ((status = kiln_cuda_enter(cuda, call->error)))
    return status;
  const kiln_cuda_request_t request = {model, call, entry, extents->values, extents->sequences};
  kiln_cuda_stream_t stream = {cuda, call->stream ? call->stream : cuda->stream, {KILN_OK, ""}};
  status = call->memory == KILN_DEVICE_POINTERS ? enqueue(&request, &stream, arguments)
                                                : run_from_host(&request, &stream, arguments);
  kiln_cuda_leave(cuda);
  if (!status)
    return kiln_error_clear(call->error);
  if (call->error)
    *call->error = stream.error;
  return status;
}
