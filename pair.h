/* pair.h: written by Kiln; do not edit. C11 and C++.
 *
 * Create a model, bind its weights once, then call its entry points with an arena and, if wanted, an
 * executor. Link with the archive beside this header, and libc and libm; nothing else. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Kiln's run-time types and status codes.
 *
 * Every generated NAME.h carries this text, under the one guard below, so that two models in a program share the types.
 * The functions live in each archive under the model's own prefix, so NAME.h declares them. None of them prints,
 * aborts, exits, or allocates inside an entry point. */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_ABI_VERSION 1
/* Alignment, in bytes, that an arena must have. */
#define KILN_ARENA_ALIGNMENT 64

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_status_t {
  KILN_OK = 0,
  KILN_NULL_ARGUMENT = 1,       /* a required pointer was null */
  KILN_EXTENT_OUT_OF_RANGE = 2, /* a run-time extent lies outside the bounds of its dimension */
  KILN_INDEX_OUT_OF_RANGE = 3,  /* an index or length in an input lies outside its table */
  KILN_ARENA_TOO_SMALL = 4,
  KILN_ARENA_MISALIGNED = 5,
  KILN_WEIGHTS_NOT_BOUND = 6,  /* an entry was called before bind_weights succeeded */
  KILN_OUT_OF_MEMORY = 7,      /* the allocator, or the system, gave no memory */
  KILN_UNSUPPORTED_CPU = 8,    /* no instruction set in the archive runs on this CPU */
  KILN_FILE_ERROR = 9,         /* a file could not be opened, read or mapped */
  KILN_FILE_MALFORMED = 10,    /* not a well-formed safetensors file */
  KILN_WEIGHT_MISSING = 11,    /* the model needs a tensor that the file lacks */
  KILN_WEIGHT_UNEXPECTED = 12, /* the file holds a tensor that the model does not know */
  KILN_WEIGHT_SHAPE = 13,      /* a tensor has another shape than the model's */
  KILN_WEIGHT_TYPE = 14,       /* a tensor has another element type than the model's */
  KILN_THREAD_ERROR = 15,      /* the bundled pool could not start its threads */
  KILN_INVALID_ARGUMENT = 16,  /* an option has no meaning, such as a pool of zero threads */
  KILN_INTERNAL_ERROR = 17     /* a defect of Kiln; please report it */
} kiln_status_t;

/* Where a call puts the words that go with a failing status: which argument or tensor, what was found, what was wanted.
 * The message is always terminated, cut if need be. Every function that takes one accepts null. */
typedef struct kiln_error_t {
  kiln_status_t status;
  char message[252];
} kiln_error_t;

/* The caller's threads. parallel_for runs task(context, i, worker) for each i in [0, count), on any threads, and
 * returns when all are done. worker is a number in [0, workers) that no two tasks running at the same time share; the
 * calling thread is worker 0 if it takes part. A null executor in a call means serial. */
typedef struct kiln_executor_t {
  void *self;
  uint32_t workers;
  void (*parallel_for)(void *self, uint32_t count, void (*task)(void *context, uint32_t index, uint32_t worker),
                       void *context);
} kiln_executor_t;

/* Memory for create and bind_weights. allocate returns null when it has none; alignment is a power of two. */
typedef struct kiln_allocator_t {
  void *self;
  void *(*allocate)(void *self, size_t bytes, size_t alignment);
  void (*release)(void *self, void *memory);
} kiln_allocator_t;

/* What every entry point takes besides its tensors. One model may run in several threads at once, each with its own
 * arena. */
typedef struct kiln_call_t {
  void *arena;                     /* KILN_ARENA_ALIGNMENT aligned; contents need not be kept between calls */
  size_t arena_bytes;              /* at least NAME_<ENTRY>_ARENA_BYTES(workers) */
  const kiln_executor_t *executor; /* null: serial */
  kiln_error_t *error;             /* null: no words */
} kiln_call_t;

/* The bundled thread pool: NAME_pool_create starts it, NAME_pool_executor gives what goes in kiln_call_t. */
typedef struct kiln_pool_t kiln_pool_t;

#ifdef __cplusplus
}
#endif
#endif /* KILN_RUNTIME_H */

#ifndef PAIR_H
#define PAIR_H

#if KILN_ABI_VERSION != 1
#error "pair.h was written for version 1 of Kiln's binary interface"
#endif

#define PAIR_PARAMETERS INT64_C(136)
/* Bytes of the packed copy of the weights, at most. */
#define PAIR_WEIGHT_BYTES ((size_t)832)
/* Instruction sets in the archive; the best one that the CPU has is used. */
#define PAIR_ISAS "x86-64-v2"
#define PAIR_ARENA_ALIGNMENT KILN_ARENA_ALIGNMENT
/* Changes with the measurements that the kernels' schedules rest on; "none": there are none. */
#define PAIR_TUNING_DIGEST "ddf338e22dd50cde"
#define PAIR_ENCODE_ROWS_MIN 1
#define PAIR_ENCODE_ROWS_MAX 20
/* Bytes of the arena that a call with this many workers needs; 1 for a null executor. */
#define PAIR_ENCODE_ARENA_BYTES(workers) ((size_t)0 + (size_t)768 * (size_t)(workers))
#define PAIR_CYCLE_ROWS_MIN 1
#define PAIR_CYCLE_ROWS_MAX 20
/* Bytes of the arena that a call with this many workers needs; 1 for a null executor. */
#define PAIR_CYCLE_ARENA_BYTES(workers) ((size_t)832 + (size_t)1152 * (size_t)(workers))

/* X(name, type, copies, shape...) for each tensor of the weight file; "{}" in a name
 * stands for 0 .. copies - 1. */
#define PAIR_WEIGHTS(X) \
  X("down.bias", f32, 1, 6) \
  X("down.weight", f32, 1, 6, 10) \
  X("up.bias", f32, 1, 10) \
  X("up.weight", f32, 1, 10, 6)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pair_t pair_t;

/* Makes a model without weights. allocator null: the C library's; it is copied, what it points to must outlive the model. */
kiln_status_t pair_create(const kiln_allocator_t *allocator, pair_t **model, kiln_error_t *error);

/* Checks the whole safetensors file against the weight table, then packs every weight once. A model whose weights are bound
 * may be used by several threads at once. On failure the model is as before. */
kiln_status_t pair_bind_weights(pair_t *model, const char *path, kiln_error_t *error);
kiln_status_t pair_bind_weights_from_memory(pair_t *model, const void *image, size_t bytes, kiln_error_t *error);

void pair_destroy(pair_t *model);

/* One sentence saying what the status means and what the caller should do; never null. */
const char *pair_status_text(kiln_status_t status);

/* The bundled thread pool: threads workers in all, the caller's thread being one of them, so threads - 1 are started. Its
 * executor serves any model, and lives as long as the pool. */
kiln_status_t pair_pool_create(uint32_t threads, kiln_pool_t **pool, kiln_error_t *error);
const kiln_executor_t *pair_pool_executor(const kiln_pool_t *pool);
void pair_pool_destroy(kiln_pool_t *pool);

/* Runs entry "encode".
 *   rows: extent, 1 .. 20
 *   x: input f32 [rows, 6]
 *   code: output f32 [rows, 10]
 * Tensors are dense and row major. Outputs must not overlap inputs or the arena. Never allocates. */
kiln_status_t pair_encode(const pair_t *model, const kiln_call_t *call,
    int64_t rows,
    const float *x,
    float *code);

/* Runs entry "cycle".
 *   rows: extent, 1 .. 20
 *   x: input f32 [rows, 6]
 *   y: output f32 [rows, 6]
 *   shares: output f32 [rows, 6]
 * Tensors are dense and row major. Outputs must not overlap inputs or the arena. Never allocates. */
kiln_status_t pair_cycle(const pair_t *model, const kiln_call_t *call,
    int64_t rows,
    const float *x,
    float *y,
    float *shares);

#ifdef __cplusplus
}
#endif
#endif /* PAIR_H */
