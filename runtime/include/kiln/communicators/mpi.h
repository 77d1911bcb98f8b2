/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A communicator on MPI (3.0 or later, Open MPI or MPICH), for C11 and C++:
 *
 *   kiln_mpi_t mpi;
 *   const kiln_communicator_t ranks = kiln_mpi_communicator(&mpi, MPI_COMM_WORLD, 10000);
 *   const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .communicator = &ranks};
 *   ...
 *   kiln_mpi_release(&mpi);
 *
 * All processes of the MPI communicator create one, in the same order. MPI must have been initialised, with support for
 * the number of threads that call it. Buffers are in host memory; sums are of f32 and i32. docs/ranks.md has the rules,
 * and how a program ends when a rank is lost. */
#ifndef KILN_COMMUNICATORS_MPI_H
#define KILN_COMMUNICATORS_MPI_H

#ifndef KILN_RUNTIME_H /* a generated NAME.h that was included before contains this header, too */
#include "kiln/runtime.h"
#endif

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  KILN_MPI_OUTSTANDING = 64, /* maximum number of collectives that have begun and not finished */
  KILN_MPI_SPINS = 1000      /* polls before it yields to other threads of the machine */
};

/* A copy to perform after MPI has finished. */
typedef struct kiln_mpi_moved_t {
  const void *from;
  void *to;
  size_t bytes; /* 0: no copy */
} kiln_mpi_moved_t;

/* The storage of a communicator. It must outlive the communicator and must not move. */
typedef struct kiln_mpi_t {
  MPI_Comm comm; /* a duplicate that this struct owns */
  uint32_t deadline_ms;
  uint32_t oldest, count; /* ring buffer of requests */
  MPI_Request requests[KILN_MPI_OUTSTANDING];
  kiln_mpi_moved_t moved[KILN_MPI_OUTSTANDING];
  kiln_error_t failed; /* why every call fails, or KILN_OK */
} kiln_mpi_t;

/* Lets this and every later call fail with the status and the message; returns the status. */
static inline kiln_status_t kiln_mpi_fail(kiln_mpi_t *mpi, kiln_status_t status, const char *words) {
  mpi->failed.status = status;
  snprintf(mpi->failed.message, sizeof mpi->failed.message, "%.*s", (int)sizeof mpi->failed.message - 1, words);
  return status;
}

/* Returns KILN_RANK_LOST with MPI's message unless the result is a success. */
static inline kiln_status_t kiln_mpi_check(kiln_mpi_t *mpi, int result) {
  char words[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length;
  if (result == MPI_SUCCESS)
    return KILN_OK;
  (void)MPI_Error_string(result, words, &length);
  return kiln_mpi_fail(mpi, KILN_RANK_LOST, words);
}

/* Waits for a request until the deadline. */
static inline kiln_status_t kiln_mpi_wait(kiln_mpi_t *mpi, MPI_Request *request) {
  const double begin = MPI_Wtime();
  int is_done = 0;
  char words[64];
  for (uint32_t spin = 0; !is_done; ++spin) {
    const kiln_status_t status = kiln_mpi_check(mpi, MPI_Test(request, &is_done, MPI_STATUS_IGNORE));
    if (status || is_done)
      return status;
    if ((MPI_Wtime() - begin) * 1000 > mpi->deadline_ms) {
      snprintf(words, sizeof words, "a rank did not take part within %u ms", (unsigned)mpi->deadline_ms);
      return kiln_mpi_fail(mpi, KILN_RANK_LOST, words);
    }
    if (spin >= KILN_MPI_SPINS)
      sched_yield();
  }
  return KILN_OK;
}

/* Returns the MPI type of elements to be summed or moved; MPI_DATATYPE_NULL: MPI has no sums of that type. */
static inline MPI_Datatype kiln_mpi_type(uint32_t element, bool is_sum) {
  switch (element) {
  case KILN_F32:
    return MPI_FLOAT;
  case KILN_I32:
    return MPI_INT32_T;
  case KILN_I8: /* Open MPI 4.1 saturates sums of I8 on some CPUs and wraps them on others */
    return is_sum ? MPI_DATATYPE_NULL : MPI_INT8_T;
  case KILN_F16:
  case KILN_BF16:
    return is_sum ? MPI_DATATYPE_NULL : MPI_UINT16_T;
  case KILN_BOOL:
    return is_sum ? MPI_DATATYPE_NULL : MPI_UINT8_T;
  default:
    return MPI_DATATYPE_NULL;
  }
}

/* Whether the result of a KILN_REDUCE_SCATTER overwrites its operand. In place, MPI puts the sum at the start of the
 * buffer, from where it must be moved. */
static inline bool kiln_mpi_is_in_place(const kiln_mpi_t *mpi, const kiln_collective_t *what, kiln_mpi_moved_t *moved) {
  int rank = 0;
  (void)MPI_Comm_rank(mpi->comm, &rank);
  moved->from = what->from;
  moved->to = what->to;
  moved->bytes = (size_t)what->elements * sizeof(float); /* i32 has the same size */
  return (const char *)what->to == (const char *)what->from + (size_t)rank * moved->bytes;
}

/* Starts the collective in MPI. */
static inline int kiln_mpi_start(kiln_mpi_t *mpi, const kiln_collective_t *what, MPI_Datatype type, uint32_t slot) {
  const int count = (int)what->elements, peer = (int)what->peer;
  MPI_Request *request = &mpi->requests[slot];
  kiln_mpi_moved_t *moved = &mpi->moved[slot];
  moved->bytes = 0;
  switch (what->kind) {
  case KILN_ALL_REDUCE:
    return MPI_Iallreduce(MPI_IN_PLACE, what->to, count, type, MPI_SUM, mpi->comm, request);
  case KILN_ALL_GATHER:
    return MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, what->to, count, type, mpi->comm, request);
  case KILN_REDUCE_SCATTER:
    if (kiln_mpi_is_in_place(mpi, what, moved))
      return MPI_Ireduce_scatter_block(MPI_IN_PLACE, (void *)what->from, count, type, MPI_SUM, mpi->comm, request);
    moved->bytes = 0;
    return MPI_Ireduce_scatter_block(what->from, what->to, count, type, MPI_SUM, mpi->comm, request);
  case KILN_EXCHANGE:
    return MPI_Ialltoall(what->from, count, type, what->to, count, type, mpi->comm, request);
  case KILN_SEND:
    return MPI_Isend(what->from, count, type, peer, 0, mpi->comm, request);
  case KILN_RECEIVE:
    return MPI_Irecv(what->to, count, type, peer, 0, mpi->comm, request);
  }
  return MPI_ERR_ARG;
}

/* Checks a collective and starts it. */
static inline kiln_status_t kiln_mpi_try(kiln_mpi_t *mpi, const kiln_collective_t *what) {
  const bool is_sum = what->kind == KILN_ALL_REDUCE || what->kind == KILN_REDUCE_SCATTER;
  const MPI_Datatype type = kiln_mpi_type(what->element, is_sum);
  const uint32_t slot = (mpi->oldest + mpi->count) % KILN_MPI_OUTSTANDING;
  if (mpi->failed.status)
    return mpi->failed.status;
  if (type == MPI_DATATYPE_NULL)
    return kiln_mpi_fail(mpi, KILN_INVALID_ARGUMENT,
                         is_sum ? "MPI: wrong element type; expected f32 or i32 to sum"
                                : "MPI: wrong element type; expected f32, f16, bf16, i32, i8 or bool");
  if (what->stream)
    return kiln_mpi_fail(mpi, KILN_INVALID_ARGUMENT, "MPI: buffers of a GPU; expected those of the host");
  if (what->elements > INT_MAX)
    return kiln_mpi_fail(mpi, KILN_INVALID_ARGUMENT, "MPI: too many elements; expected parts of less than 2^31");
  if (mpi->count == KILN_MPI_OUTSTANDING)
    return kiln_mpi_fail(mpi, KILN_INVALID_ARGUMENT,
                         "MPI: too many collectives; expected at most KILN_MPI_OUTSTANDING");
  const kiln_status_t status = kiln_mpi_check(mpi, kiln_mpi_start(mpi, what, type, slot));
  mpi->count += status == KILN_OK;
  return status;
}

/* Returns the status of a call with the message of the first failure. */
static inline kiln_status_t kiln_mpi_tell(const kiln_mpi_t *mpi, kiln_status_t status, kiln_error_t *error) {
  if (status && error)
    *error = mpi->failed;
  return status;
}

/* kiln_communicator_t::begin. */
static inline kiln_status_t kiln_mpi_begin(void *self, const kiln_collective_t *collective, kiln_error_t *error) {
  kiln_mpi_t *mpi = (kiln_mpi_t *)self;
  return kiln_mpi_tell(mpi, kiln_mpi_try(mpi, collective), error);
}

/* kiln_communicator_t::finish. */
static inline kiln_status_t kiln_mpi_finish(void *self, kiln_error_t *error) {
  kiln_mpi_t *mpi = (kiln_mpi_t *)self;
  kiln_status_t status = mpi->failed.status;
  if (!status && mpi->count == 0)
    status = kiln_mpi_fail(mpi, KILN_INVALID_ARGUMENT, "finish: no collective; expected one that was begun");
  if (!status && !(status = kiln_mpi_wait(mpi, &mpi->requests[mpi->oldest]))) {
    const kiln_mpi_moved_t *moved = &mpi->moved[mpi->oldest];
    if (moved->bytes > 0)
      memmove(moved->to, moved->from, moved->bytes);
    mpi->oldest = (mpi->oldest + 1) % KILN_MPI_OUTSTANDING;
    --mpi->count;
  }
  return kiln_mpi_tell(mpi, status, error);
}

/* MPI makes progress only while it is called. finish reports any error. */
static inline void kiln_mpi_poll(void *self) {
  kiln_mpi_t *mpi = (kiln_mpi_t *)self;
  int is_done;
  if (!mpi->failed.status && mpi->count > 0)
    (void)MPI_Request_get_status(mpi->requests[mpi->oldest], &is_done, MPI_STATUS_IGNORE);
}

/* Creates a communicator of the processes of comm, which it duplicates: all of them call this. Any wait for other
 * ranks, including that of the duplication, is limited to deadline_ms. If creation fails, the first call of an entry
 * reports why. */
static inline kiln_communicator_t kiln_mpi_communicator(kiln_mpi_t *storage, MPI_Comm comm, uint32_t deadline_ms) {
  kiln_communicator_t communicator = {storage, 0, 0, kiln_mpi_begin, kiln_mpi_finish, kiln_mpi_poll};
  MPI_Request request;
  int rank = 0, size = 0;
  storage->comm = MPI_COMM_NULL;
  storage->deadline_ms = deadline_ms;
  storage->oldest = storage->count = 0;
  storage->failed.status = KILN_OK;
  storage->failed.message[0] = '\0';
  if (!kiln_mpi_check(storage, MPI_Comm_rank(comm, &rank)) && !kiln_mpi_check(storage, MPI_Comm_size(comm, &size)) &&
      !kiln_mpi_check(storage, MPI_Comm_idup(comm, &storage->comm, &request)) && !kiln_mpi_wait(storage, &request))
    (void)kiln_mpi_check(storage, MPI_Comm_set_errhandler(storage->comm, MPI_ERRORS_RETURN));
  communicator.rank = (uint32_t)rank;
  communicator.size = (uint32_t)size;
  return communicator;
}

/* Releases a communicator that no call uses any more: all processes call this, before MPI_Finalize. After a failure
 * it does nothing: MPI may still use the buffers of pending requests, which must live until the process ends. */
static inline void kiln_mpi_release(kiln_mpi_t *storage) {
  if (storage->failed.status == KILN_OK && storage->count == 0)
    (void)MPI_Comm_free(&storage->comm);
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_COMMUNICATORS_MPI_H */
