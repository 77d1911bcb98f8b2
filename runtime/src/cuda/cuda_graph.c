// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* CUDA graph capture of calls: the first call with given dimensions and pointers becomes a graph, which later ones
 * launch. Work is captured in a separate stream, so that concurrent work in other streams neither enters a capture
 * nor invalidates it. */
#include "cuda/cuda_model.h"

#include <string.h>

/* The graph of a call; a free slot has no executable and was never used. */
typedef struct graph_t {
  kiln_cuda_executable_t executable;
  uint64_t used;  /* number of the launch that used it last */
  uint64_t key[]; /* FIXED_WORDS, then dimensions and arguments, then zeros */
} graph_t;
/* Entry, arena, packed weights, stream. */
enum { FIXED_WORDS = 4 };

typedef struct recorder_t {
  kiln_cuda_recorder_t head;
  pthread_mutex_t lock; /* held while a graph is looked up, captured or launched */
  kiln_cuda_queue_t queue;
  uint64_t launches, graph_bytes;
  uint64_t graphs[]; /* KILN_MAX_CAPTURED_CALLS, and one more for the key of a call */
} recorder_t;

static recorder_t *recorder_of(const kiln_cuda_t *cuda) { return (recorder_t *)(void *)cuda->recorder; }

static graph_t *graph_at(recorder_t *recorder, uint32_t index) {
  return (graph_t *)(void *)((char *)recorder->graphs + index * recorder->graph_bytes);
}

static void forget(const kiln_cuda_t *cuda, graph_t *graph) {
  if (graph->executable) /* destroyed after a running launch has finished */
    cuda->driver.cuGraphExecDestroy(graph->executable);
}

static void empty(kiln_cuda_t *cuda) {
  recorder_t *recorder = recorder_of(cuda);
  for (uint32_t i = 0; i < KILN_MAX_CAPTURED_CALLS; ++i)
    forget(cuda, graph_at(recorder, i));
  if (recorder->queue)
    cuda->driver.cuStreamDestroy_v2(recorder->queue);
  pthread_mutex_destroy(&recorder->lock);
}

/* Initialises `graph` with the key of the call, without an executable. */
static void describe(const kiln_cuda_request_t *request, const kiln_cuda_stream_t *stream, void *const *arguments,
                     graph_t *graph) {
  const kiln_entry_t *entry = &request->model->descriptor->entries[request->entry];
  uint64_t *key = graph->key;
  memset(graph, 0, (size_t)recorder_of(stream->cuda)->graph_bytes);
  *key++ = request->entry;
  *key++ = (uintptr_t)request->call->arena;
  *key++ = (uintptr_t)request->model->packed;
  *key++ = (uintptr_t)stream->queue;
  for (uint32_t i = 0; i < entry->symbol_count; ++i)
    *key++ = (uint64_t)request->extents[i];
  for (uint32_t i = 0; i < entry->argument_count; ++i)
    *key++ = (uintptr_t)arguments[i];
}

/* Returns the graph of the call, or the least recently launched slot, reset to this key without an executable. */
static graph_t *find(const kiln_cuda_request_t *request, const kiln_cuda_stream_t *stream, void *const *arguments) {
  recorder_t *recorder = recorder_of(stream->cuda);
  graph_t *call = graph_at(recorder, KILN_MAX_CAPTURED_CALLS), *oldest = graph_at(recorder, 0);
  describe(request, stream, arguments, call);
  for (uint32_t i = 0; i < KILN_MAX_CAPTURED_CALLS; ++i) {
    graph_t *graph = graph_at(recorder, i);
    if (graph->executable && memcmp(graph->key, call->key, (size_t)recorder->graph_bytes - sizeof *call) == 0)
      return graph;
    if (graph->used < oldest->used)
      oldest = graph;
  }
  forget(stream->cuda, oldest);
  return memcpy(oldest, call, (size_t)recorder->graph_bytes);
}

static kiln_status_t record(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream, void *const *arguments,
                            kiln_cuda_executable_t *executable) {
  kiln_cuda_t *cuda = stream->cuda;
  kiln_error_t *error = &stream->error;
  kiln_cuda_stream_t recording = {cuda, recorder_of(cuda)->queue, {KILN_OK, ""}};
  kiln_cuda_recording_t graph = NULL;
  kiln_status_t status = kiln_cuda_kernels_load(cuda, error); /* kernels cannot be loaded during capture */
  if (status ||
      (status = KILN_CUDA_CALL(cuda, error, cuStreamBeginCapture_v2, recording.queue, KILN_CUDA_CAPTURE_THREAD_LOCAL)))
    return status;
  if ((status = kiln_cuda_run_body(request, &recording, arguments)))
    *error = recording.error;
  kiln_status_t ended = KILN_CUDA_CALL(cuda, status ? NULL : error, cuStreamEndCapture, recording.queue, &graph);
  if (!status && !(status = ended))
    status = KILN_CUDA_CALL(cuda, error, cuGraphInstantiateWithFlags, executable, graph, 0);
  if (graph)
    cuda->driver.cuGraphDestroy(graph);
  return status;
}

static kiln_status_t run(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream, void *const *arguments) {
  kiln_cuda_t *cuda = stream->cuda;
  recorder_t *recorder = recorder_of(cuda);
  int is_capturing = 0;
  kiln_status_t status = KILN_CUDA_CALL(cuda, &stream->error, cuStreamIsCapturing, stream->queue, &is_capturing);
  if (status)
    return status;
  if (is_capturing) /* the caller is capturing */
    return kiln_cuda_run_body(request, stream, arguments);
  pthread_mutex_lock(&recorder->lock);
  graph_t *graph = find(request, stream, arguments);
  if (graph->executable || !(status = record(request, stream, arguments, &graph->executable))) {
    graph->used = ++recorder->launches;
    status = KILN_CUDA_CALL(cuda, &stream->error, cuGraphLaunch, graph->executable, stream->queue);
  }
  pthread_mutex_unlock(&recorder->lock);
  return status;
}

/* Size of a slot for the entry with the most dimensions and arguments. */
static uint64_t graph_bytes(const kiln_descriptor_t *descriptor) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < descriptor->entry_count; ++i) {
    const uint64_t words = (uint64_t)descriptor->entries[i].symbol_count + descriptor->entries[i].argument_count;
    most = words > most ? words : most;
  }
  return sizeof(graph_t) + (FIXED_WORDS + most) * sizeof(uint64_t);
}

/* Creates the recorder; the model receives it only when it is complete. */
static kiln_status_t start(kiln_model_t *model, kiln_error_t *error) {
  kiln_cuda_t *cuda = model->device;
  const uint64_t each = graph_bytes(model->descriptor);
  const uint64_t bytes = sizeof(recorder_t) + (KILN_MAX_CAPTURED_CALLS + 1) * each;
  kiln_cuda_queue_t queue = NULL;
  void *memory;
  kiln_status_t status = KILN_CUDA_CALL(cuda, error, cuStreamCreate, &queue, KILN_CUDA_NON_BLOCKING);
  if (status)
    return status;
  if ((status = kiln_memory_allocate(&model->allocator, bytes, "the recordings of calls", &memory, error))) {
    cuda->driver.cuStreamDestroy_v2(queue);
    return status;
  }
  recorder_t *recorder = memset(memory, 0, (size_t)bytes);
  recorder->head = (kiln_cuda_recorder_t){run, empty};
  recorder->queue = queue;
  recorder->graph_bytes = each;
  pthread_mutex_init(&recorder->lock, NULL);
  cuda->recorder = &recorder->head;
  return KILN_OK;
}

kiln_status_t kiln_capture_entries(kiln_model_t *model, kiln_error_t *error) {
  if (!model)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "capture_entries: null given; expected a model");
  kiln_cuda_t *cuda = model->device;
  if (!cuda || cuda->recorder)
    return kiln_error_clear(error);
  if (!cuda->driver.cuGraphInstantiateWithFlags)
    return kiln_error_set(error, KILN_DEVICE_ERROR,
                          "capture_entries: CUDA driver too old; expected one with cuGraphInstantiateWithFlags");
  kiln_status_t status = kiln_cuda_enter(cuda, error);
  if (status)
    return status;
  status = start(model, error);
  kiln_cuda_leave(cuda);
  return status ? status : kiln_error_clear(error);
}
