/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A communicator on NCCL (2.14 or later), for C11 and C++, for ranks with one GPU each:
 *
 *   kiln_nccl_t nccl;
 *   const kiln_communicator_t ranks = kiln_nccl_communicator(&nccl, comm, 10000);
 *   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .communicator = &ranks};
 *   ...
 *   kiln_nccl_release(&nccl);
 *
 * The adapter takes ownership of comm. comm must have config.blocking = 0: otherwise a call waits within NCCL for a
 * rank that is lost. The device of comm must be current (cudaSetDevice) wherever a function of this file is called.
 * Collectives complete in stream order, so finish does not wait for the GPU; to wait for a stream use kiln_nccl_wait,
 * which observes the deadline. docs/ranks.md has the rules. */
#ifndef KILN_COMMUNICATORS_NCCL_H
#define KILN_COMMUNICATORS_NCCL_H

#ifndef KILN_RUNTIME_H /* a generated NAME.h that was included before contains this header, too */
#include "kiln/runtime.h"
#endif

#include <nccl.h> /* includes cuda_runtime.h */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  KILN_NCCL_OUTSTANDING = 64, /* maximum number of collectives pending on the GPU; one more waits for the oldest */
  KILN_NCCL_SPINS = 1000      /* polls before it yields to other threads of the machine */
};

/* A collective that has begun, with events for its start and its end on the GPU. */
typedef struct kiln_nccl_item_t {
  kiln_collective_t what;
  cudaEvent_t ready, done;
} kiln_nccl_item_t;

/* The storage of a communicator. It must outlive the communicator and must not move. */
typedef struct kiln_nccl_t {
  ncclComm_t comm; /* owned; null: it was aborted */
  uint32_t deadline_ms;
  uint32_t size;
  uint32_t oldest, count; /* ring buffer of items not known to have completed on the GPU */
  uint32_t held;          /* the last of these, which were not passed to NCCL yet */
  uint32_t unfinished;    /* collectives that finish has not been called for */
  double since_ms;        /* when the oldest item was first seen to have started; negative: not yet */
  kiln_nccl_item_t items[KILN_NCCL_OUTSTANDING];
  kiln_error_t failed; /* why every call fails, or KILN_OK */
} kiln_nccl_t;

static inline double kiln_nccl_now_ms(void) {
  struct timespec time;
#ifdef CLOCK_MONOTONIC
  clock_gettime(CLOCK_MONOTONIC, &time);
#else /* C11 without POSIX */
  (void)timespec_get(&time, TIME_UTC);
#endif
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Records a failure and aborts comm, so that pending kernels end regardless of the other ranks. */
static inline kiln_status_t kiln_nccl_fail(kiln_nccl_t *nccl, kiln_status_t status, const char *words) {
  nccl->failed.status = status;
  snprintf(nccl->failed.message, sizeof nccl->failed.message, "%.*s", (int)sizeof nccl->failed.message - 1, words);
  if (nccl->comm)
    (void)ncclCommAbort(nccl->comm);
  nccl->comm = NULL;
  return status;
}

/* Aborts the communicator because its deadline has passed; returns KILN_RANK_LOST. */
static inline kiln_status_t kiln_nccl_lose(kiln_nccl_t *nccl) {
  char words[64];
  snprintf(words, sizeof words, "a rank did not take part within %u ms", (unsigned)nccl->deadline_ms);
  return kiln_nccl_fail(nccl, KILN_RANK_LOST, words);
}

/* Whether NCCL accepted a call; a non-blocking communicator returns ncclInProgress at first. */
static inline bool kiln_nccl_is_taken(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

/* Returns a status with NCCL's message unless the call was accepted. */
static inline kiln_status_t kiln_nccl_check(kiln_nccl_t *nccl, ncclResult_t result) {
  char words[252];
  kiln_status_t status = KILN_RANK_LOST;
  if (kiln_nccl_is_taken(result))
    return KILN_OK;
  if (result == ncclUnhandledCudaError)
    status = KILN_DEVICE_ERROR;
  else if (result == ncclInvalidArgument || result == ncclInvalidUsage)
    status = KILN_INVALID_ARGUMENT;
  const char *last = ncclGetLastError(nccl->comm);
  snprintf(words, sizeof words, "NCCL: %s%s%s", ncclGetErrorString(result), last && last[0] ? ": " : "",
           last ? last : "");
  return kiln_nccl_fail(nccl, status, words);
}

/* Returns KILN_DEVICE_ERROR with CUDA's message unless the result is a success. */
static inline kiln_status_t kiln_nccl_check_cuda(kiln_nccl_t *nccl, cudaError_t result) {
  char words[252];
  if (result == cudaSuccess)
    return KILN_OK;
  snprintf(words, sizeof words, "CUDA: %s", cudaGetErrorString(result));
  return kiln_nccl_fail(nccl, KILN_DEVICE_ERROR, words);
}

/* Whether an event or a stream has completed. cudaErrorNotReady is not an error, but CUDA keeps it as the last one. */
static inline kiln_status_t kiln_nccl_is_done(kiln_nccl_t *nccl, cudaError_t result, bool *is_done) {
  *is_done = result == cudaSuccess;
  if (result != cudaErrorNotReady)
    return kiln_nccl_check_cuda(nccl, result);
  (void)cudaGetLastError();
  return KILN_OK;
}

/* Waits, until the deadline, for NCCL's asynchronous host work, such as connecting ranks. */
static inline kiln_status_t kiln_nccl_settle(kiln_nccl_t *nccl) {
  const double begin = kiln_nccl_now_ms();
  for (uint32_t spin = 0;; ++spin) {
    ncclResult_t state = ncclSuccess;
    kiln_status_t status = kiln_nccl_check(nccl, ncclCommGetAsyncError(nccl->comm, &state));
    if (!status)
      status = kiln_nccl_check(nccl, state);
    if (status || state == ncclSuccess)
      return status;
    if (kiln_nccl_now_ms() - begin > nccl->deadline_ms)
      return kiln_nccl_lose(nccl);
    if (spin >= KILN_NCCL_SPINS)
      sched_yield();
  }
}

/* Refuses a stream in capture: events of a graph cannot be queried, so the deadline could not be observed. */
static inline kiln_status_t kiln_nccl_check_stream(kiln_nccl_t *nccl, void *stream) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (!stream)
    return kiln_nccl_fail(nccl, KILN_INVALID_ARGUMENT,
                          "NCCL: buffers of the host; expected those of a GPU, and a stream");
  kiln_status_t status = kiln_nccl_check_cuda(nccl, cudaStreamIsCapturing((cudaStream_t)stream, &capture));
  if (status || capture == cudaStreamCaptureStatusNone)
    return status;
  return kiln_nccl_fail(nccl, KILN_INVALID_ARGUMENT, "NCCL: stream is captured; expected one that is not");
}

/* Returns the NCCL type of elements to be summed or moved; ncclNumTypes: there is none. */
static inline ncclDataType_t kiln_nccl_type(uint32_t element, bool is_sum) {
  switch (element) {
  case KILN_F32:
    return ncclFloat32;
  case KILN_F16:
    return ncclFloat16;
  case KILN_BF16:
    return ncclBfloat16;
  case KILN_I32:
    return ncclInt32;
  case KILN_I8:
    return ncclInt8;
  case KILN_BOOL:
    return is_sum ? ncclNumTypes : ncclUint8;
  default:
    return ncclNumTypes;
  }
}

/* All-to-all in one group: sends a part to each rank and receives one from each. */
static inline ncclResult_t kiln_nccl_exchange(const kiln_nccl_t *nccl, const kiln_collective_t *what,
                                              ncclDataType_t type) {
  static const size_t bytes_of[] = {4, 2, 2, 4, 1, 1}; /* KILN_F32 .. KILN_BOOL */
  const size_t count = (size_t)what->elements, bytes = count * bytes_of[what->element];
  const cudaStream_t stream = (cudaStream_t)what->stream;
  ncclResult_t result = ncclSuccess;
  for (uint32_t rank = 0; rank < nccl->size && kiln_nccl_is_taken(result); ++rank) {
    result = ncclSend((const char *)what->from + rank * bytes, count, type, (int)rank, nccl->comm, stream);
    if (kiln_nccl_is_taken(result))
      result = ncclRecv((char *)what->to + rank * bytes, count, type, (int)rank, nccl->comm, stream);
  }
  return result;
}

/* Passes a collective to NCCL. */
static inline ncclResult_t kiln_nccl_start(const kiln_nccl_t *nccl, const kiln_collective_t *what) {
  const cudaStream_t stream = (cudaStream_t)what->stream;
  const ncclDataType_t type = kiln_nccl_type(what->element, false);
  const size_t count = (size_t)what->elements;
  const int peer = (int)what->peer;
  switch (what->kind) {
  case KILN_ALL_REDUCE:
    return ncclAllReduce(what->from, what->to, count, type, ncclSum, nccl->comm, stream);
  case KILN_ALL_GATHER:
    return ncclAllGather(what->from, what->to, count, type, nccl->comm, stream);
  case KILN_REDUCE_SCATTER:
    return ncclReduceScatter(what->from, what->to, count, type, ncclSum, nccl->comm, stream);
  case KILN_EXCHANGE:
    return kiln_nccl_exchange(nccl, what, type);
  case KILN_SEND:
    return ncclSend(what->from, count, type, peer, nccl->comm, stream);
  case KILN_RECEIVE:
    return ncclRecv(what->to, count, type, peer, nccl->comm, stream);
  }
  return ncclInvalidArgument;
}

/* Returns the pending collective with this number; 0 is the oldest. */
static inline kiln_nccl_item_t *kiln_nccl_item(kiln_nccl_t *nccl, uint32_t number) {
  return &nccl->items[(nccl->oldest + number) % KILN_NCCL_OUTSTANDING];
}

/* Passes the held items to NCCL as one group, so that two ranks that send to each other do not deadlock. */
static inline kiln_status_t kiln_nccl_hand_over(kiln_nccl_t *nccl) {
  const uint32_t first = nccl->count - nccl->held;
  kiln_status_t status = nccl->failed.status;
  if (status || nccl->held == 0)
    return status;
  nccl->held = 0;
  for (uint32_t i = first; i < nccl->count && !status; ++i) {
    const kiln_nccl_item_t *item = kiln_nccl_item(nccl, i);
    status = kiln_nccl_check_cuda(nccl, cudaEventRecord(item->ready, (cudaStream_t)item->what.stream));
  }
  if (status || (status = kiln_nccl_check(nccl, ncclGroupStart())) != KILN_OK)
    return status;
  ncclResult_t result = ncclSuccess;
  for (uint32_t i = first; i < nccl->count && kiln_nccl_is_taken(result); ++i)
    result = kiln_nccl_start(nccl, &kiln_nccl_item(nccl, i)->what);
  const ncclResult_t ended = ncclGroupEnd(); /* must be called after a failure, too */
  status = kiln_nccl_check(nccl, kiln_nccl_is_taken(result) ? ended : result);
  if (!status)
    status = kiln_nccl_settle(nccl);
  for (uint32_t i = first; i < nccl->count && !status; ++i) {
    const kiln_nccl_item_t *item = kiln_nccl_item(nccl, i);
    status = kiln_nccl_check_cuda(nccl, cudaEventRecord(item->done, (cudaStream_t)item->what.stream));
  }
  return status;
}

/* Polls the GPU without waiting. The deadline counts from when the oldest item was seen to have started, so the
 * GPU's preceding work does not count. */
static inline kiln_status_t kiln_nccl_look(kiln_nccl_t *nccl) {
  ncclResult_t state = ncclSuccess;
  kiln_status_t status = nccl->failed.status;
  if (!status && !(status = kiln_nccl_check(nccl, ncclCommGetAsyncError(nccl->comm, &state))))
    status = kiln_nccl_check(nccl, state);
  while (!status && nccl->count > nccl->held) {
    const kiln_nccl_item_t *item = kiln_nccl_item(nccl, 0);
    bool is_done = false, is_ready = nccl->since_ms >= 0;
    status = kiln_nccl_is_done(nccl, cudaEventQuery(item->done), &is_done);
    if (!status && is_done) {
      nccl->oldest = (nccl->oldest + 1) % KILN_NCCL_OUTSTANDING;
      --nccl->count;
      nccl->since_ms = -1;
      continue;
    }
    if (!status && is_ready && kiln_nccl_now_ms() - nccl->since_ms > nccl->deadline_ms)
      status = kiln_nccl_lose(nccl);
    if (!status && !is_ready) {
      status = kiln_nccl_is_done(nccl, cudaEventQuery(item->ready), &is_ready);
      nccl->since_ms = is_ready ? kiln_nccl_now_ms() : -1;
    }
    break;
  }
  return status;
}

/* Checks a collective and starts it, but holds a send or a receive. */
static inline kiln_status_t kiln_nccl_try(kiln_nccl_t *nccl, const kiln_collective_t *what) {
  const bool is_sum = what->kind == KILN_ALL_REDUCE || what->kind == KILN_REDUCE_SCATTER;
  const bool is_single = what->kind == KILN_SEND || what->kind == KILN_RECEIVE;
  kiln_status_t status = nccl->failed.status;
  if (status)
    return status;
  if (kiln_nccl_type(what->element, is_sum) == ncclNumTypes)
    return kiln_nccl_fail(nccl, KILN_INVALID_ARGUMENT,
                          is_sum ? "NCCL: wrong element type; expected f32, f16, bf16, i32 or i8 to sum"
                                 : "NCCL: wrong element type; expected f32, f16, bf16, i32, i8 or bool");
  status = kiln_nccl_check_stream(nccl, what->stream);
  if (!status && (!is_single || nccl->held == KILN_NCCL_OUTSTANDING))
    status = kiln_nccl_hand_over(nccl);
  for (uint32_t spin = 0; !status && nccl->count == KILN_NCCL_OUTSTANDING; ++spin) {
    status = kiln_nccl_look(nccl);
    if (spin >= KILN_NCCL_SPINS)
      sched_yield();
  }
  if (status)
    return status;
  kiln_nccl_item(nccl, nccl->count)->what = *what;
  ++nccl->count;
  ++nccl->held;
  ++nccl->unfinished;
  return is_single ? KILN_OK : kiln_nccl_hand_over(nccl);
}

/* Returns the status of a call with the message of the first failure. */
static inline kiln_status_t kiln_nccl_tell(const kiln_nccl_t *nccl, kiln_status_t status, kiln_error_t *error) {
  if (status && error)
    *error = nccl->failed;
  return status;
}

/* Sends and receives are held until finish or a collective of another kind, so that those that begin together form
 * one group. */
static inline kiln_status_t kiln_nccl_begin(void *self, const kiln_collective_t *collective, kiln_error_t *error) {
  kiln_nccl_t *nccl = (kiln_nccl_t *)self;
  return kiln_nccl_tell(nccl, kiln_nccl_try(nccl, collective), error);
}

/* After this call, work that follows in stream order may use the buffers. */
static inline kiln_status_t kiln_nccl_finish(void *self, kiln_error_t *error) {
  kiln_nccl_t *nccl = (kiln_nccl_t *)self;
  kiln_status_t status = nccl->failed.status;
  if (!status && nccl->unfinished == 0)
    status = kiln_nccl_fail(nccl, KILN_INVALID_ARGUMENT, "finish: no collective; expected one that was begun");
  if (!status && !(status = kiln_nccl_hand_over(nccl))) {
    --nccl->unfinished;
    status = kiln_nccl_look(nccl);
  }
  return kiln_nccl_tell(nccl, status, error);
}

/* For callers that wait for the stream by other means: aborts at the deadline, so that the stream ends. The next
 * call reports the failure. */
static inline void kiln_nccl_poll(void *self) { (void)kiln_nccl_look((kiln_nccl_t *)self); }

/* Waits until the GPU has completed the work of a stream; unlike cudaStreamSynchronize it does not wait forever for
 * a lost rank. After a failure NCCL's pending work in the stream ends by itself with undefined results. */
static inline kiln_status_t kiln_nccl_wait(kiln_nccl_t *nccl, cudaStream_t stream, kiln_error_t *error) {
  kiln_status_t status = kiln_nccl_hand_over(nccl);
  bool is_done = false;
  for (uint32_t spin = 0; !status && !is_done; ++spin) {
    status = kiln_nccl_is_done(nccl, cudaStreamQuery(stream), &is_done);
    if (!status)
      status = kiln_nccl_look(nccl);
    if (spin >= KILN_NCCL_SPINS)
      sched_yield();
  }
  return kiln_nccl_tell(nccl, status, error);
}

/* Creates a communicator of the ranks of comm, whose initialisation may still be in progress: each of them calls
 * this. A collective waits at most deadline_ms for ranks that do not take part. If creation fails, the first call of
 * an entry reports why. */
static inline kiln_communicator_t kiln_nccl_communicator(kiln_nccl_t *storage, ncclComm_t comm, uint32_t deadline_ms) {
  int rank = 0, size = 0;
  storage->comm = comm;
  storage->deadline_ms = deadline_ms;
  storage->oldest = storage->count = storage->held = storage->unfinished = 0;
  storage->since_ms = -1;
  storage->failed.status = KILN_OK;
  storage->failed.message[0] = '\0';
  for (uint32_t i = 0; i < KILN_NCCL_OUTSTANDING; ++i)
    storage->items[i].ready = storage->items[i].done = NULL;
  if (!comm)
    (void)kiln_nccl_fail(storage, KILN_NULL_ARGUMENT, "NCCL: null given; expected a communicator of NCCL");
  else if (!kiln_nccl_settle(storage) && !kiln_nccl_check(storage, ncclCommUserRank(comm, &rank)))
    (void)kiln_nccl_check(storage, ncclCommCount(comm, &size));
  storage->size = (uint32_t)size;
  for (uint32_t i = 0; i < KILN_NCCL_OUTSTANDING && !storage->failed.status; ++i)
    if (!kiln_nccl_check_cuda(storage, cudaEventCreateWithFlags(&storage->items[i].ready, cudaEventDisableTiming)))
      (void)kiln_nccl_check_cuda(storage, cudaEventCreateWithFlags(&storage->items[i].done, cudaEventDisableTiming));
  const kiln_communicator_t communicator = {storage,         (uint32_t)rank,   (uint32_t)size,
                                            kiln_nccl_begin, kiln_nccl_finish, kiln_nccl_poll};
  return communicator;
}

/* Releases a communicator that no call uses any more: all ranks call this. It destroys comm, which a failure has
 * already aborted. */
static inline void kiln_nccl_release(kiln_nccl_t *storage) {
  if (!kiln_nccl_hand_over(storage) && !kiln_nccl_check(storage, ncclCommFinalize(storage->comm)) &&
      !kiln_nccl_settle(storage))
    (void)ncclCommDestroy(storage->comm);
  storage->comm = NULL;
  for (uint32_t i = 0; i < KILN_NCCL_OUTSTANDING; ++i) {
    if (storage->items[i].ready)
      (void)cudaEventDestroy(storage->items[i].ready);
    if (storage->items[i].done)
      (void)cudaEventDestroy(storage->items[i].done);
  }
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_COMMUNICATORS_NCCL_H */
