/* SPDX-License-Identifier: Apache-2.0 */
/* The constant data that the compiler emits for a model, and the frame its code runs in. compiler/emit builds these
 * structs field by field in LLVM IR: change both together (tests/runtime/model_layout_test.cpp pins the offsets). */
#ifndef KILN_MODEL_H
#define KILN_MODEL_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_MAX_RANK = 6 };

/* KILN_F32 and so on. */
typedef enum kiln_dtype_t {
#define KILN_ELEMENT_TYPE(name, NAME, kind, bits, digits, c_type, mlir) KILN_##NAME,
#include "kiln/element_types.def"
} kiln_dtype_t;

/* offset + factor * extents[symbol[0]] * extents[symbol[1]]; a symbol of -1 counts as 1. A fixed extent has factor 0.
 */
typedef struct kiln_extent_t {
  int64_t offset;
  int64_t factor;
  int32_t symbol[2];
} kiln_extent_t;

typedef struct kiln_symbol_t {
  const char *name;
  int64_t min, max; /* inclusive */
  uint32_t least;   /* 0, or 1 + the position of the symbol that it must not be below */
  uint32_t reserved;
} kiln_symbol_t;

typedef struct kiln_argument_t {
  const char *name;
  uint32_t dtype; /* kiln_dtype_t */
  uint32_t rank;
  kiln_extent_t extents[KILN_MAX_RANK];
  uint32_t is_output;
  uint32_t is_checked; /* i32 input whose values must lie in [minimum, limit) */
  int64_t minimum;
  kiln_extent_t limit;
} kiln_argument_t;

/* One tensor of the weight file. With copies > 1 the name holds one "{}", replaced by 0 .. copies-1 (a Stack's layers).
 * Two weights may bear one name: the tensor is then packed twice (a table that is both gathered from and multiplied
 * by). */
typedef struct kiln_weight_t {
  const char *name;
  uint32_t dtype;
  uint32_t rank;
  int64_t shape[KILN_MAX_RANK];
  uint32_t copies;
  uint32_t reserved;
} kiln_weight_t;

/* Where a weight goes in the packed copy. Copy c starts at offset + c * stride. tile == 0: stored dense, row major,
 * first element at `shift` elements (several weights joined along dimension 0 share one offset). tile > 0: dimension
 * `dim` (0, or 1 of a matrix), shifted by `shift`, is split by `tile`: element (n along dim, k along the others, which
 * are one) is stored at [(n + shift) / tile][k][(n + shift) % tile]; bytes that no weight covers are zero. */
typedef struct kiln_placement_t {
  uint64_t offset;
  uint64_t stride;
  uint32_t tile;
  uint32_t dim;
  uint64_t shift;
} kiln_placement_t;

/* A stack of scratch memory for one worker; generated kernels call kiln_malloc and kiln_free on it. Only the runtime
 * looks inside. One cache line long, so that workers do not share one. */
typedef struct kiln_worker_t {
  const kiln_executor_t *executor; /* null: loops run serially; so it is for all workers inside a parallel loop */
  struct kiln_worker_t *workers;   /* the call's table, executor->workers long */
  char *top;
  char *end;
  void *last; /* header of the topmost block, or null */
  /* Not 0: serial loops run from their last task to the first. A loop over time turns with each step, so that the
   * weights that the step before read last, and that the caches still have, are read first. */
  int64_t is_backward;
  char reserved[KILN_ARENA_ALIGNMENT - 5 * sizeof(void *) - sizeof(int64_t)];
} kiln_worker_t;

typedef struct kiln_frame_t {
  kiln_worker_t *worker; /* worker 0; the kernels' user context */
  const char *weights;   /* the packed copy */
  char *arena;           /* where the states lie, and behind them the memory plan */
  const int64_t *extents;
  void *const *arguments;
} kiln_frame_t;

typedef struct kiln_entry_t {
  const char *name;
  const kiln_symbol_t *symbols;
  const kiln_argument_t *arguments;
  uint32_t symbol_count;
  uint32_t argument_count;
} kiln_entry_t;

/* One entry compiled for one instruction set. The body returns 0, or nonzero on an internal error. */
typedef struct kiln_body_t {
  int (*run)(const kiln_frame_t *frame);
  uint64_t plan_bytes;    /* the model's states, then tensors of the memory plan */
  uint64_t scratch_bytes; /* a worker */
} kiln_body_t;

/* What one kiln_malloc takes of a worker's scratch: its header and the rounded block. scratch_bytes is the sum of this
 * over the allocations that are alive together in one worker, those around a parallel loop and those inside its tasks.
 * A block freed before one that was allocated later is given back only with the later one. */
#define KILN_SCRATCH_BLOCK_BYTES(bytes) (KILN_ARENA_ALIGNMENT + KILN_ARENA_ROUND(bytes))
#define KILN_ARENA_ROUND(bytes)                                                                                        \
  (((uint64_t)(bytes) + (KILN_ARENA_ALIGNMENT - 1)) & ~(uint64_t)(KILN_ARENA_ALIGNMENT - 1))

/* An arena is [plan_bytes, rounded][workers x scratch_bytes, rounded][workers x kiln_worker_t]; kiln_run asks for
 * fixed + workers * per_worker bytes. With several variants a header states the largest fixed and the largest
 * per_worker. */
static inline uint64_t kiln_arena_fixed_bytes(uint64_t plan_bytes) { return KILN_ARENA_ROUND(plan_bytes); }
static inline uint64_t kiln_arena_worker_bytes(uint64_t scratch_bytes) {
  return KILN_ARENA_ROUND(scratch_bytes) + sizeof(kiln_worker_t);
}

/* Bits of kiln_variant_t.isa; the runtime maps each to CPU features. */
enum { KILN_ISA_X86_64_V2 = 2, KILN_ISA_X86_64_V3 = 3, KILN_ISA_X86_64_V4 = 4 };

typedef struct kiln_variant_t {
  uint32_t isa; /* one KILN_ISA_ value */
  uint32_t reserved;
  const kiln_placement_t *placements; /* one a weight */
  uint64_t packed_bytes;
  const kiln_body_t *bodies; /* one an entry */
} kiln_variant_t;

typedef struct kiln_descriptor_t {
  uint32_t abi_version;
  uint32_t weight_count;
  uint32_t entry_count;
  uint32_t variant_count;
  const char *name;
  const kiln_weight_t *weights;
  const kiln_entry_t *entries;
  const kiln_variant_t *variants; /* best first */
} kiln_descriptor_t;

/* Emitted by the compiler. */
extern const kiln_descriptor_t kiln_descriptor;

/* Called by generated host code: copies `rows` rows of `row_bytes` bytes, which are source_stride bytes apart in the
 * source and side by side in the target. */
void kiln_copy_rows(void *target, const void *source, uint64_t rows, uint64_t row_bytes, uint64_t source_stride);

/* What the header of the model declares (kiln_model_t is NAME_t there). allocator null: malloc, and pages of the system
 * for the packed weights. The model borrows nothing: the allocator struct is copied. */
typedef struct kiln_model_t kiln_model_t;
kiln_status_t kiln_create(const kiln_allocator_t *allocator, kiln_model_t **model, kiln_error_t *error);
/* Checks the whole safetensors file or image against the model, then packs every weight once. On failure the model is
 * as before. */
kiln_status_t kiln_bind_weights(kiln_model_t *model, const char *path, kiln_error_t *error);
kiln_status_t kiln_bind_weights_from_memory(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error);
void kiln_destroy(kiln_model_t *model);

/* One sentence saying what the status means and what the caller should do; never null, for any value. */
const char *kiln_status_text(kiln_status_t status);

/* The bundled thread pool: threads workers in all, the caller's thread being one of them, so threads - 1 are started.
 */
kiln_status_t kiln_pool_create(uint32_t threads, kiln_pool_t **pool, kiln_error_t *error);
/* The executor to put in kiln_call_t; lives as long as the pool. One parallel_for at a time: calls from several threads
 * queue. */
const kiln_executor_t *kiln_pool_executor(const kiln_pool_t *pool);
/* Joins the threads; null is fine. */
void kiln_pool_destroy(kiln_pool_t *pool);

/* NAME_<entry> is generated code that gathers its arguments into arrays and calls this. extents: one a symbol;
 * arguments: one an argument, inputs then outputs. Checks everything, lays out the frame in the arena, runs the body.
 */
kiln_status_t kiln_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const int64_t *extents,
                       void *const *arguments);

/* Called by generated kernels; user_context is a kiln_worker_t. kiln_malloc gives KILN_ARENA_ALIGNMENT aligned memory,
 * or null when the worker's scratch is used up. kiln_do_par_for runs [min, min + size) and returns the result of a task
 * that failed, or 0; a loop inside a task of another loop runs serially. The Halide hooks halide_malloc, halide_free,
 * halide_do_par_for (and halide_error where one remains) are renamed to these when an archive is made. */
void *kiln_malloc(void *user_context, size_t bytes);
void kiln_free(void *user_context, void *memory);
int kiln_do_par_for(void *user_context, int (*task)(void *user_context, int index, uint8_t *closure), int min, int size,
                    uint8_t *closure);

#ifdef __cplusplus
}
#endif
#endif /* KILN_MODEL_H */
