/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The constant data that the compiler emits for a model, the frame of its code, and the functions that it calls. The
 * structs are defined in model.def. */
#ifndef KILN_MODEL_H
#define KILN_MODEL_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_MAX_RANK = 8 };

/* Memory spaces: host memory, or that of a device. */
enum { KILN_MEMORY_HOST = 0, KILN_MEMORY_DEVICE = 1 };

/* CPU features that code requires, as bits: each level of the x86-64 psABI without those below it; Armv8-A with its
 * vectors. */
enum {
  KILN_CPU_X86_64_V2 = 1 << 0,
  KILN_CPU_X86_64_V3 = 1 << 1,
  KILN_CPU_X86_64_V4 = 1 << 2,
  KILN_CPU_X86_64_VNNI = 1 << 3, /* in addition to v4: AVX512-VNNI */
  KILN_CPU_AARCH64 = 1 << 8,
  KILN_CPU_AARCH64_DOTPROD = 1 << 9, /* in addition: int8 dot products of Armv8.2 */
  KILN_CPU_RISCV64 = 1 << 12,        /* rv64gc */
  KILN_CPU_RISCV64_V = 1 << 13,
  KILN_CPU_WASM32 = 1 << 16, /* SIMD128; an engine without it rejects the module */
};

/* The role of a pipeline stage. Roles from KILN_STAGE_ROLE_MIDDLE on are those of stages between the first and the
 * last; stages with the same number of layers of each stack share a role. A library without pipeline parallelism has
 * only one role. */
enum { KILN_STAGE_ROLE_FIRST = 0, KILN_STAGE_ROLE_LAST = 1, KILN_STAGE_ROLE_MIDDLE = 2 };

/* Distributes the layers of a stack to pipeline stages: every stage gets the same number; of the remaining layers,
 * the stages just before the last one get one each. So a stage has kiln_stage_layers layers, starting at
 * kiln_first_layer. */
static inline uint32_t kiln_first_longer_stage(uint32_t layers, uint32_t stages) {
  return stages - 1 - layers % stages;
}
static inline uint32_t kiln_first_layer(uint32_t layers, uint32_t stages, uint32_t stage) {
  const uint32_t longer = kiln_first_longer_stage(layers, stages);
  return layers / stages * stage + (stage > longer ? stage - longer : 0);
}
static inline uint32_t kiln_stage_layers(uint32_t layers, uint32_t stages, uint32_t stage) {
  return layers / stages + (stage >= kiln_first_longer_stage(layers, stages) && stage + 1 < stages ? 1 : 0);
}

/* What an entry reads of earlier calls. */
enum {
  KILN_KEEPS_STATES = 1 << 0,
  KILN_KEEPS_OPTIMIZER_STATE = 1 << 1 /* optimiser state */
};
/* Size of the mark before the data that an arena keeps, which says whether they were initialised (session.c). */
#define KILN_MARK_BYTES 64

/* Flags of weights; the stage flags also apply to states. */
enum {
  KILN_WEIGHT_VARIABLE = 1 << 0, /* may be written between calls */
  KILN_WEIGHT_OF_STAGE = 1 << 1, /* in a stack; each pipeline stage has the copies of its layers */
  /* Stages with that role do not need it: this bit, shifted left by a KILN_STAGE_ROLE_; the last bit covers all middle
   * roles. */
  KILN_WEIGHT_ABSENT = 1 << 2
};

/* How a weight is initialised before a training. */
enum {
  KILN_INITIAL_CONSTANT = 0,
  KILN_INITIAL_UNIFORM = 1, /* within a bound of 0 */
  KILN_INITIAL_NORMAL = 2   /* with mean 0 and a standard deviation */
};

/* Values of is_output besides 0 and 1. */
enum { KILN_OUTPUT_OF_LAST = 2 };

struct kiln_backend_t;
struct kiln_cuda_stream_t;
struct kiln_frame_t;
struct kiln_together_t;
struct kiln_sharding_t;
struct kiln_tracing_t;
typedef int (*kiln_body_function_t)(const struct kiln_frame_t *frame);

#ifdef __cplusplus
#define KILN_ZERO = {} /* a default, so that compilers do not warn about missing initialisers */
#else
#define KILN_ZERO
#endif
#define KILN_STRUCT(structure) typedef struct kiln_##structure##_t {
#define KILN_FIELD(structure, kind, type, name) type name KILN_ZERO;
#define KILN_FIELDS(structure, kind, type, name, count) type name[count] KILN_ZERO;
#define KILN_REST(structure, declaration) declaration;
#define KILN_END(structure)                                                                                            \
  }                                                                                                                    \
  kiln_##structure##_t;
#include "core/model.def"
#undef KILN_ZERO

/* The scratch bytes of one kiln_malloc: its header and the rounded block. scratch_bytes is the sum of this over the
 * allocations that are live at the same time in one worker, those around a parallel loop and those inside its tasks.
 * A block that is freed before a later one is reclaimed only together with the later one. */
#define KILN_SCRATCH_BLOCK_BYTES(bytes) (KILN_ARENA_ALIGNMENT + KILN_ARENA_ROUND(bytes))
#define KILN_ARENA_ROUND(bytes)                                                                                        \
  (((uint64_t)(bytes) + (KILN_ARENA_ALIGNMENT - 1)) & ~(uint64_t)(KILN_ARENA_ALIGNMENT - 1))

/* An arena is [plan_bytes][scratch_bytes][(workers - 1) x task_bytes][workers x kiln_worker_t], each rounded;
 * kiln_run requires fixed + workers * per_worker bytes. With several variants a header states the largest fixed and
 * the largest per_worker. On a device there is one worker, which is on the host's stack, and staging_bytes, which
 * count as fixed, follow the scratch. */
static inline uint64_t kiln_arena_fixed_bytes(uint64_t plan_bytes, uint64_t scratch_bytes, uint64_t task_bytes) {
  return KILN_ARENA_ROUND(plan_bytes) + KILN_ARENA_ROUND(scratch_bytes) - KILN_ARENA_ROUND(task_bytes);
}
static inline uint64_t kiln_arena_worker_bytes(uint64_t task_bytes) {
  return KILN_ARENA_ROUND(task_bytes) + sizeof(kiln_worker_t);
}

static inline uint64_t kiln_body_arena_bytes(const kiln_body_t *body, uint32_t workers) {
  return kiln_arena_fixed_bytes(body->plan_bytes, body->scratch_bytes, body->task_bytes) + body->staging_bytes +
         workers * kiln_arena_worker_bytes(body->task_bytes);
}

/* Emitted by the compiler. */
extern const kiln_descriptor_t kiln_descriptor;
/* The sharding of a parallel descriptor: the only reference to the runtime's parallel code except collective.c. */
extern const struct kiln_sharding_t kiln_sharding;
/* The packed weights of each variant, in an archive that embeds them. */
extern const char *const kiln_embedded_weights[];
/* In an archive with a self-test. */
extern const kiln_selftest_t kiln_selftest_table;

/* Called by entry-point glue: copies `rows` rows of `row_bytes` bytes, which are source_stride bytes apart in the
 * source and contiguous in the target, in the variant's memory space. */
void kiln_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                    uint64_t source_stride);
/* Flushes magnitudes below 2^-100 to 0, as for stored states. NaN and infinities stay. */
void kiln_flush_f32(void *values, uint64_t bytes);
void kiln_flush_bf16(void *values, uint64_t bytes);
/* Scatter-add into table [height, width]: each table row is the sum of the rows [count, width] whose index is its
 * number, in their order, independent of the number of workers. Returns the result of the executor's loop. */
int kiln_scatter_add(kiln_worker_t *worker, float *table, const float *rows, const int32_t *indices, int64_t height,
                     int64_t count, int64_t width);
/* The table x [height, width] with the rows [count, width] added at their indices, in their order; others are ignored.
 * KILN_F32, or KILN_I32, which wraps. The result does not overlap the operands. */
int kiln_index_add(kiln_worker_t *worker, void *table, const void *x, const void *rows, const int32_t *indices,
                   int64_t height, int64_t count, int64_t width, uint32_t element);
/* The first `count` sorted positions of the middle axis of x [outer, extent, inner], as [outer, count, inner]. Equal
 * elements keep their order, and NaN is larger than any number. */
int kiln_argsort(kiln_worker_t *worker, int32_t *places, const void *x, int64_t outer, int64_t extent, int64_t inner,
                 int64_t count, uint32_t element, uint32_t is_descending);
void kiln_cuda_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                         uint64_t source_stride);

/* The groups of communicating processes: the dialect's Group. */
enum { KILN_GROUP_RANKS = 0, KILN_GROUP_REPLICAS = 1, KILN_GROUP_STAGES = 2, KILN_GROUPS = 3 };
/* Directions between pipeline stages: the dialect's Way. */
enum { KILN_WAY_ONWARD = 0, KILN_WAY_BACK = 1, KILN_WAY_ACROSS = 2 };
/* Called by entry-point glue: begins a collective of a group of frame->together, with parts of `elements` elements
 * of type `element`. KILN_ALL_REDUCE: from equals to. KILN_ALL_GATHER: from is the own part, which is copied to its
 * place in `to` unless it is there. KILN_REDUCE_SCATTER and KILN_EXCHANGE: from and to do not overlap. The rules of
 * kiln_communicator_t apply to buffers until all collectives of the group are finished. This function and the
 * following ones return 0, or the body's return value: a kiln_status_t, whose message is that of the call. */
int32_t kiln_begin_collective(const kiln_frame_t *frame, uint32_t group, uint32_t kind, const void *from, void *to,
                              uint64_t elements, uint32_t element);
/* Begins a KILN_ALL_REDUCE in place, or a KILN_REDUCE_SCATTER whose results overwrite the operand. A trace is
 * notified when it begins and when it is finished, under `layer`. */
int32_t kiln_begin_sum(const kiln_frame_t *frame, uint32_t group, uint32_t kind, void *at, uint64_t elements,
                       uint32_t element, const char *layer, int64_t number);
/* Begins a KILN_SEND or a KILN_RECEIVE of the buffer between pipeline stages, in a direction. A trace is notified of
 * a send when it begins and when it is finished, under `layer`. */
int32_t kiln_begin_move(const kiln_frame_t *frame, uint32_t kind, uint32_t way, void *at, uint64_t elements,
                        uint32_t element, const char *layer, int64_t number);
/* Called between kernels while collectives may be pending. */
void kiln_poll_collectives(const kiln_frame_t *frame);
/* Waits for all pending collectives of the group. */
int32_t kiln_finish_collectives(const kiln_frame_t *frame, uint32_t group);

/* Called by host launchers of CUDA kernels: enqueues a kernel function with this many blocks. parameters[i] points
 * at the value of the i-th parameter. Returns 0, or the body's return value. worker->top .. worker->end is the
 * kernel's scratch memory on the device; later work of the stream may reuse it. */
int kiln_cuda_launch(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks_x,
                     uint32_t blocks_y, uint32_t blocks_z, void **parameters);
/* Launches a TMA variant, a function of module->tma, whose first parameters are tensor maps, which are created
 * here. At most as many of `blocks` are launched as the GPU has multiprocessors. KILN_CUDA_NO_TMA: nothing was
 * launched, since the GPU, the driver or a tensor does not support TMA; the caller then launches the regular
 * function. */
enum { KILN_CUDA_NO_TMA = -1, KILN_CUDA_MAX_MAPS = 2 };
int kiln_cuda_launch_tma(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks,
                         uint32_t map_count, const kiln_cuda_map_t *maps, void **parameters);

/* The functions that the model's header declares (kiln_model_t is NAME_t there). A null allocator means malloc, and
 * system pages for the packed weights. The model copies the allocator struct. create tries the variants in order and
 * takes the first that runs on this machine; create_on tries those for the device that the options name. */
typedef struct kiln_model_t kiln_model_t;
kiln_status_t kiln_create(const kiln_allocator_t *allocator, kiln_model_t **model, kiln_error_t *error);
kiln_status_t kiln_create_on(const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error);
/* The device of the model; KILN_ANY_DEVICE for null. */
kiln_device_t kiln_device(const kiln_model_t *model);
/* The name of the variant: "x86-64-v3"; "" for null. */
const char *kiln_target(const kiln_model_t *model);
/* For archives with the target cuda; on a CPU they do nothing. cuda_image returns the model's kernels as assembled
 * by the driver, which assembles all of them for this call. The image belongs to the model until it is destroyed;
 * null: an image was loaded, so there is nothing new to keep. load_cuda_image loads it in a later process, before
 * the first call, and does the work of KILN_LOAD_KERNELS_AT_CREATE without assembling anything;
 * KILN_INVALID_ARGUMENT: the image is incomplete, or for other kernels, another GPU or driver; the model works
 * without it. */
kiln_status_t kiln_cuda_image(const kiln_model_t *model, const void **image, size_t *bytes, kiln_error_t *error);
kiln_status_t kiln_load_cuda_image(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* Time that the driver has spent on assembling kernels of the model so far; 0 on a CPU. */
double kiln_cuda_assembly_seconds(const kiln_model_t *model);
/* Enables CUDA graph capture of calls, of which KILN_MAX_CAPTURED_CALLS are kept: the first call with given
 * dimensions, arena, stream and tensors is captured, and later ones launch the graph. Must precede the first call. */
kiln_status_t kiln_capture_entries(kiln_model_t *model, kiln_error_t *error);

/* Checks the whole safetensors file or image against the model, then packs every weight once. A path that ends with
 * ".json" is an index of several files. On failure the model is unchanged. */
kiln_status_t kiln_bind_weights(kiln_model_t *model, const char *path, kiln_error_t *error);
kiln_status_t kiln_bind_weights_from_memory(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* Like kiln_bind_weights, with renames of tensors; each rename must match a tensor. */
kiln_status_t kiln_bind_weights_renamed(kiln_model_t *model, const char *path, const kiln_rename_t *renames,
                                        size_t count, kiln_error_t *error);
/* Bind third-party quantised checkpoints: a GGUF file; a safetensors file or an index, where NAME.weight is computed
 * from NAME.qweight, NAME.qzeros, NAME.scales and, if present, NAME.g_idx. */
kiln_status_t kiln_bind_gguf(kiln_model_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                             kiln_error_t *error);
kiln_status_t kiln_bind_quantized(kiln_model_t *model, const char *path, kiln_quantization_t quantization,
                                  const kiln_rename_t *renames, size_t count, kiln_error_t *error);
/* Packed files: the packed weights of the model's variant in their memory layout. save_packed writes a temporary
 * file, then renames it to the path. bind_packed maps a packed file, which must not change while the model lives;
 * KILN_FILE_MISMATCH: it belongs to another library, target or version. On failure the model is unchanged. */
kiln_status_t kiln_save_packed(const kiln_model_t *model, const char *path, kiln_error_t *error);
kiln_status_t kiln_bind_packed(kiln_model_t *model, const char *path, kiln_error_t *error);
/* Binds the weights that are embedded in the archive. */
kiln_status_t kiln_bind_embedded(kiln_model_t *model, kiln_error_t *error);
/* Creates a model and compares the results of its entries with those that the compiler evaluated; options may be
 * null. */
kiln_status_t kiln_selftest(const kiln_options_t *options, kiln_error_t *error);
/* Writes the bound weights as a safetensors file with the types of the weight table: to a temporary file, which is
 * then renamed to the path. */
kiln_status_t kiln_save_weights(const kiln_model_t *model, const char *path, kiln_error_t *error);
/* Binds initial weights for a training, which depend only on the seed and the weights' names: the same bits on each
 * machine. */
kiln_status_t kiln_initialise_weights(kiln_model_t *model, uint64_t seed, kiln_error_t *error);
/* Saves the trained weights and the remaining training state: the states at the beginning of its arena, the step and
 * the seed. load_training restores them; frozen weights must be bound first. On failure model, arena and training
 * are unchanged. */
kiln_status_t kiln_save_training(const kiln_model_t *model, const void *arena, const kiln_training_t *training,
                                 const char *path, kiln_error_t *error);
kiln_status_t kiln_load_training(kiln_model_t *model, void *arena, kiln_training_t *training, const char *path,
                                 kiln_error_t *error);
/* Write the same files from the slices of all ranks of the call's communicator; rank 0 writes. Each rank calls them,
 * with the arena of its training. All ranks return the same status. */
kiln_status_t kiln_save_weights_together(const kiln_model_t *model, const kiln_call_t *call, const char *path);
kiln_status_t kiln_save_training_together(const kiln_model_t *model, const kiln_call_t *call,
                                          const kiln_training_t *training, const char *path);
/* Swaps the weights with their moving averages in the arena of a training. */
kiln_status_t kiln_swap_average(kiln_model_t *model, void *arena, kiln_error_t *error);
/* Accesses rows of a bound weight along its first dimension, dense and in the weight's type, whatever its storage
 * format; a weight of rank 0 is one row. Only a variable can be written, while no other call uses the model. */
kiln_status_t kiln_read_weight(const kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows, void *values,
                               kiln_error_t *error);
kiln_status_t kiln_write_weight(kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows,
                                const void *values, kiln_error_t *error);
void kiln_destroy(kiln_model_t *model);

/* Memory in the model's memory space: the device's, or the host's from the model's allocator. Copies and zeroing are
 * complete when the call returns; on a device they wait for pending work of the model's own stream only. */
kiln_status_t kiln_allocate_memory(const kiln_model_t *model, size_t bytes, void **memory, kiln_error_t *error);
void kiln_release_memory(const kiln_model_t *model, void *memory);
kiln_status_t kiln_copy_to_memory(const kiln_model_t *model, void *to, const void *from_host, size_t bytes,
                                  kiln_error_t *error);
kiln_status_t kiln_copy_from_memory(const kiln_model_t *model, void *to_host, const void *from, size_t bytes,
                                    kiln_error_t *error);
kiln_status_t kiln_copy_memory(const kiln_model_t *model, void *to, const void *from, size_t bytes,
                               kiln_error_t *error);
kiln_status_t kiln_zero_memory(const kiln_model_t *model, void *memory, size_t bytes, kiln_error_t *error);

/* Zero the data that calls keep in an arena: the states; begin_training also zeroes the optimiser state, before step
 * 1. */
kiln_status_t kiln_begin_session(const kiln_model_t *model, void *arena, kiln_error_t *error);
kiln_status_t kiln_begin_training(const kiln_model_t *model, void *arena, kiln_error_t *error);

/* Returns a sentence that says what the status means and what the caller should do; never null, for any value. */
const char *kiln_status_text(kiln_status_t status);

/* The bundled thread pool with this number of workers, including the caller's thread: threads - 1 are started. */
kiln_status_t kiln_pool_create(uint32_t threads, kiln_pool_t **pool, kiln_error_t *error);
/* The executor for kiln_call_t; it lives as long as the pool. It runs one parallel_for at a time: calls from several
 * threads queue. */
const kiln_executor_t *kiln_pool_executor(const kiln_pool_t *pool);
/* Joins the threads; null is fine. */
void kiln_pool_destroy(kiln_pool_t *pool);

/* NAME_<entry> is generated code that gathers its arguments into arrays and calls this. extents: one per symbol;
 * arguments: inputs, then outputs. Checks everything, lays out the frame in the arena, runs the body. */
kiln_status_t kiln_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const int64_t *extents,
                       void *const *arguments);
/* Like kiln_run, for NAME_<entry>_batch; the sequences supply the dimensions. */
kiln_status_t kiln_run_batch(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, size_t count,
                             const kiln_sequence_t *sequences, void *const *arguments);

/* Called by bodies around a kernel if frame->tracing is not null; see kiln_event_t. */
void kiln_trace_begin(struct kiln_tracing_t *tracing, const char *kernel, const char *layer, int64_t number,
                      uint64_t flops, uint64_t bytes);
void kiln_trace_end(struct kiln_tracing_t *tracing);

/* Called by generated kernels; user_context is a kiln_worker_t. kiln_malloc returns memory aligned to
 * KILN_ARENA_ALIGNMENT, or null if the worker's scratch is exhausted. kiln_do_par_for runs [min, min + size) and
 * returns the result of a task that failed, or 0; a loop inside a task of another loop runs serially. The Halide
 * hooks halide_malloc, halide_free, halide_do_par_for (and halide_error if one remains) are renamed to these when an
 * archive is built. */
void *kiln_malloc(void *user_context, size_t bytes);
void kiln_free(void *user_context, void *memory);
int kiln_do_par_for(void *user_context, int (*task)(void *user_context, int index, uint8_t *closure), int min, int size,
                    uint8_t *closure);

#ifdef __cplusplus
}
#endif
#endif /* KILN_MODEL_H */
