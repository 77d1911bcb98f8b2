/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The constant data that the compiler emits for a model, the frame its code runs in, and the functions that it calls.
 * The structs stand in model.def. */
#ifndef KILN_MODEL_H
#define KILN_MODEL_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_MAX_RANK = 6 };

/* Where memory lies: the CPU's, or that of a device. */
enum { KILN_MEMORY_HOST = 0, KILN_MEMORY_DEVICE = 1 };

/* What code needs of a CPU, as bits: each level of the x86-64 psABI without those below it; Armv8-A with its vectors.
 */
enum {
  KILN_CPU_X86_64_V2 = 1 << 0,
  KILN_CPU_X86_64_V3 = 1 << 1,
  KILN_CPU_X86_64_V4 = 1 << 2,
  KILN_CPU_X86_64_VNNI = 1 << 3, /* beside v4: AVX512-VNNI */
  KILN_CPU_AARCH64 = 1 << 8,
  KILN_CPU_AARCH64_DOTPROD = 1 << 9, /* beside it: dot products of int8, of Armv8.2 */
  KILN_CPU_RISCV64 = 1 << 12,        /* rv64gc */
  KILN_CPU_RISCV64_V = 1 << 13,
  KILN_CPU_WASM32 = 1 << 16, /* SIMD128, which a module has or is refused as a whole */
};

/* What a stage of several is, by what it does. From KILN_ROLE_MIDDLE on they are those of stages between the first and
 * the last, one for all that have as many layers of each stack. A library for one stage has no other. */
enum { KILN_ROLE_FIRST = 0, KILN_ROLE_LAST = 1, KILN_ROLE_MIDDLE = 2 };

/* Of a stack's layers all stages have as many; of those that are left, the stages before the last one have one each.
 * So a stage has kiln_stage_layers of them, from kiln_first_layer on. */
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

/* What an entry reads of the calls before. */
enum {
  KILN_KEEPS_STATES = 1 << 0,
  KILN_KEEPS_MOMENTS = 1 << 1 /* what a training keeps */
};
/* At the beginning of what an arena keeps: whether it was begun (session.c). */
#define KILN_MARK_BYTES 64

/* Of weights; of states those of stages. */
enum {
  KILN_WEIGHT_VARIABLE = 1 << 0, /* may be written between calls */
  KILN_WEIGHT_OF_STAGE = 1 << 1, /* of a stack, of whose copies each stage has its layers' */
  /* Stages with that role do without it: this bit, shifted to the left by a KILN_ROLE_; the last is of all between. */
  KILN_WEIGHT_ABSENT = 1 << 2
};

/* What a weight is before a training. */
enum {
  KILN_INITIAL_CONSTANT = 0,
  KILN_INITIAL_UNIFORM = 1, /* within a bound of 0 */
  KILN_INITIAL_NORMAL = 2   /* around 0, with a standard deviation */
};

/* What an argument is as an output, beside 0 and 1. */
enum { KILN_OUTPUT_OF_LAST = 2 };

struct kiln_backend_t;
struct kiln_cuda_stream_t;
struct kiln_frame_t;
struct kiln_together_t;
struct kiln_sharding_t;
struct kiln_tracing_t;
typedef int (*kiln_body_function_t)(const struct kiln_frame_t *frame);

#ifdef __cplusplus
#define KILN_ZERO = {} /* a default, so that compilers do not ask for a value */
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
#include "model.def"
#undef KILN_ZERO

/* What one kiln_malloc takes of a worker's scratch: its header and the rounded block. scratch_bytes is the sum of this
 * over the allocations that are alive together in one worker, those around a parallel loop and those inside its tasks.
 * A block freed before one that was allocated later is given back only with the later one. */
#define KILN_SCRATCH_BLOCK_BYTES(bytes) (KILN_ARENA_ALIGNMENT + KILN_ARENA_ROUND(bytes))
#define KILN_ARENA_ROUND(bytes)                                                                                        \
  (((uint64_t)(bytes) + (KILN_ARENA_ALIGNMENT - 1)) & ~(uint64_t)(KILN_ARENA_ALIGNMENT - 1))

/* An arena is [plan_bytes][scratch_bytes][(workers - 1) x task_bytes][workers x kiln_worker_t], each rounded; kiln_run
 * asks for fixed + workers * per_worker bytes. With several variants a header states the largest fixed and the largest
 * per_worker. On a device there is one worker, which lies on the host's stack, and staging_bytes, which count as fixed,
 * are behind the scratch. */
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
/* What a descriptor for several ranks points at: all of the run time that knows of them but collective.c. */
extern const struct kiln_sharding_t kiln_sharding;
/* The packed weights of each variant, in an archive that embeds them. */
extern const char *const kiln_embedded_weights[];
/* In an archive with a self-test. */
extern const kiln_selftest_t kiln_selftest_table;

/* Called by generated host code: copies `rows` rows of `row_bytes` bytes, which are source_stride bytes apart in the
 * source and side by side in the target, in the memory of the variant. */
void kiln_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                    uint64_t source_stride);
/* Floats below 2^-100 become 0, as in what states keep. NaN and infinities stay. */
void kiln_flush_f32(void *values, uint64_t bytes);
void kiln_flush_bf16(void *values, uint64_t bytes);
/* table [height, width]: the sums of those rows [count, width] that have its rows' numbers as indices, in their order,
 * whatever the number of workers. What the executor's loop returned. */
int kiln_scatter_add(kiln_worker_t *worker, float *table, const float *rows, const int32_t *indices, int64_t height,
                     int64_t count, int64_t width);
void kiln_cuda_copy_rows(kiln_worker_t *worker, void *target, const void *source, uint64_t rows, uint64_t row_bytes,
                         uint64_t source_stride);

/* The processes that do something together: the dialect's Group. */
enum { KILN_GROUP_RANKS = 0, KILN_GROUP_REPLICAS = 1, KILN_GROUP_STAGES = 2, KILN_GROUPS = 3 };
/* From stage to stage: the dialect's Way. */
enum { KILN_WAY_ONWARD = 0, KILN_WAY_BACK = 1, KILN_WAY_ACROSS = 2 };
/* Called by generated host code: begins what the processes of a group of frame->together do together, of `elements`
 * elements of the type `element` a part. KILN_ALL_REDUCE: from is to. KILN_ALL_GATHER: from is the own part, which is
 * copied to its place in `to`, unless it lies there. KILN_REDUCE_SCATTER and KILN_EXCHANGE: from and to do not overlap.
 * Buffers are as kiln_communicator_t says until all of the group are finished. This and what is below return 0, or what
 * the body is to return: a kiln_status_t, whose words are the call's. */
int32_t kiln_begin_collective(const kiln_frame_t *frame, uint32_t group, uint32_t kind, const void *from, void *to,
                              uint64_t elements, uint32_t element);
/* Begins a KILN_ALL_REDUCE where its operand lies, or a KILN_REDUCE_SCATTER of which each has its part there. A trace
 * is told of it, as of `layer`, when it begins and when it is finished. */
int32_t kiln_begin_sum(const kiln_frame_t *frame, uint32_t group, uint32_t kind, void *at, uint64_t elements,
                       uint32_t element, const char *layer, int64_t number);
/* Begins a KILN_SEND or a KILN_RECEIVE of what lies there, of stages, on a way. A trace is told of what is sent, as of
 * `layer`, when it begins and when it is finished. */
int32_t kiln_begin_move(const kiln_frame_t *frame, uint32_t kind, uint32_t way, void *at, uint64_t elements,
                        uint32_t element, const char *layer, int64_t number);
/* Called between kernels while something may be under way. */
void kiln_poll_collectives(const kiln_frame_t *frame);
/* Waits for all that were begun. */
int32_t kiln_finish_collectives(const kiln_frame_t *frame, uint32_t group);

/* Called by the host code of CUDA kernels: enqueues a function of a kernel with so many blocks. parameters[i] points at
 * the value of the i-th parameter. Returns 0, or what the body is to return. worker->top .. worker->end is the kernel's
 * scratch memory, on the device; what follows in the stream may use it again. */
int kiln_cuda_launch(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks_x,
                     uint32_t blocks_y, uint32_t blocks_z, void **parameters);
/* The same for a function of module->mapped, whose first parameters are tensor maps, made here. Of `blocks` no more are
 * launched than the GPU has multiprocessors. KILN_CUDA_NOT_MAPPED: nothing is, since GPU, driver or a tensor have none;
 * the caller launches the other form. */
enum { KILN_CUDA_NOT_MAPPED = -1, KILN_CUDA_MAX_MAPS = 2 };
int kiln_cuda_launch_mapped(kiln_worker_t *worker, const kiln_cuda_module_t *module, uint32_t function, uint32_t blocks,
                            uint32_t map_count, const kiln_cuda_map_t *maps, void **parameters);

/* What the header of the model declares (kiln_model_t is NAME_t there). allocator null: malloc, and pages of the system
 * for the packed weights. The model borrows nothing: the allocator struct is copied. create tries the variants in order
 * and takes the first that runs here, create_on of those for the device that the options name. */
typedef struct kiln_model_t kiln_model_t;
kiln_status_t kiln_create(const kiln_allocator_t *allocator, kiln_model_t **model, kiln_error_t *error);
kiln_status_t kiln_create_on(const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error);
/* What the model runs on; KILN_ANY_DEVICE for null. */
kiln_device_t kiln_device(const kiln_model_t *model);
/* The name of the variant: "x86-64-v3"; "" for null. */
const char *kiln_target(const kiln_model_t *model);
/* Of archives with the target cuda; on a CPU they do nothing. cuda_image gives the model's kernels as the driver has
 * assembled them, which it does now for those that no call needed yet, and for the others again. The image is the
 * model's until it is destroyed; null: one was loaded, so that there is nothing new to keep. load_cuda_image takes it
 * in a process after this one, before the first call, and does what KILN_LOAD_KERNELS_AT_CREATE does but assembles
 * nothing; KILN_INVALID_ARGUMENT: the image is not whole, or of other kernels, another GPU or driver; the model works
 * without. */
kiln_status_t kiln_cuda_image(const kiln_model_t *model, const void **image, size_t *bytes, kiln_error_t *error);
kiln_status_t kiln_load_cuda_image(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* How long the driver assembled kernels of the model so far; 0 on a CPU. */
double kiln_cuda_assembly_seconds(const kiln_model_t *model);
/* From now on calls record themselves, of which KILN_MAX_CAPTURED_CALLS are kept: the first with given extents, arena,
 * stream and tensors becomes a CUDA graph, which those after it launch. Before the first call. */
kiln_status_t kiln_capture_entries(kiln_model_t *model, kiln_error_t *error);

/* Checks the whole safetensors file or image against the model, then packs every weight once. A path that ends with
 * ".json" is the index of several files. On failure the model is as before. */
kiln_status_t kiln_bind_weights(kiln_model_t *model, const char *path, kiln_error_t *error);
kiln_status_t kiln_bind_weights_from_memory(kiln_model_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* The same, whose tensors the renames call as the model does; each must fit one. */
kiln_status_t kiln_bind_weights_renamed(kiln_model_t *model, const char *path, const kiln_rename_t *renames,
                                        size_t count, kiln_error_t *error);
/* The same of quantised checkpoints: a GGUF file; a safetensors file
 * or an index, where NAME.weight is made of NAME.qweight, NAME.qzeros, NAME.scales and perhaps NAME.g_idx. */
kiln_status_t kiln_bind_gguf(kiln_model_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                             kiln_error_t *error);
kiln_status_t kiln_bind_quantized(kiln_model_t *model, const char *path, kiln_quantization_t quantization,
                                  const kiln_rename_t *renames, size_t count, kiln_error_t *error);
/* Packed files: the packed weights of the model's variant as they lie in memory. save_packed writes one, beside the
 * path before it takes the place of what is there. bind_packed maps one, for which the file must stay as it is while
 * the model lives; KILN_FILE_MISMATCH: it is of another library, target or version. On failure the model is as before.
 */
kiln_status_t kiln_save_packed(const kiln_model_t *model, const char *path, kiln_error_t *error);
kiln_status_t kiln_bind_packed(kiln_model_t *model, const char *path, kiln_error_t *error);
/* Binds the weights that lie in the archive. */
kiln_status_t kiln_bind_embedded(kiln_model_t *model, kiln_error_t *error);
/* Makes a model and compares what its entries give with what the compiler evaluated; options null: none. */
kiln_status_t kiln_selftest(const kiln_options_t *options, kiln_error_t *error);
/* Writes the bound weights as a safetensors file, of the types of the weight table, beside the path before it takes the
 * place of what is there. */
kiln_status_t kiln_save_weights(const kiln_model_t *model, const char *path, kiln_error_t *error);
/* Binds first weights of a training, which follow from the seed and the weights' names: the same bits on each machine.
 */
kiln_status_t kiln_initialise_weights(kiln_model_t *model, uint64_t seed, kiln_error_t *error);
/* The weights that are trained, and all else that a training goes on from: the states at the beginning of its arena,
 * the step and the seed. load_training takes it back; what is frozen is bound before. On failure model, arena and
 * training are as before. */
kiln_status_t kiln_save_training(const kiln_model_t *model, const void *arena, const kiln_training_t *training,
                                 const char *path, kiln_error_t *error);
kiln_status_t kiln_load_training(kiln_model_t *model, void *arena, kiln_training_t *training, const char *path,
                                 kiln_error_t *error);
/* The same files of what all ranks of the call's communicator have, which rank 0 writes: each of them calls it, with
 * the arena of its training. One status for all of them. */
kiln_status_t kiln_save_weights_together(const kiln_model_t *model, const kiln_call_t *call, const char *path);
kiln_status_t kiln_save_training_together(const kiln_model_t *model, const kiln_call_t *call,
                                          const kiln_training_t *training, const char *path);
/* Exchanges the weights and their moving averages, in the arena of a training. */
kiln_status_t kiln_swap_average(kiln_model_t *model, void *arena, kiln_error_t *error);
/* Rows of a bound weight, along its first dimension, dense and of the weight's type, whatever it is stored as; a weight
 * of rank 0 is one row.
 * Only a variable can be written, while no other call uses the model. */
kiln_status_t kiln_read_weight(const kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows, void *values,
                               kiln_error_t *error);
kiln_status_t kiln_write_weight(kiln_model_t *model, const char *weight, uint64_t row, uint64_t rows,
                                const void *values, kiln_error_t *error);
void kiln_destroy(kiln_model_t *model);

/* Memory where the model's arena lies: the device's, or the host's by the model's allocator. Copies and zeros are there
 * when the call returns; on a device they wait for what calls left in the model's own stream, and for no other. */
kiln_status_t kiln_allocate_memory(const kiln_model_t *model, size_t bytes, void **memory, kiln_error_t *error);
void kiln_release_memory(const kiln_model_t *model, void *memory);
kiln_status_t kiln_copy_to_memory(const kiln_model_t *model, void *to, const void *from_host, size_t bytes,
                                  kiln_error_t *error);
kiln_status_t kiln_copy_from_memory(const kiln_model_t *model, void *to_host, const void *from, size_t bytes,
                                    kiln_error_t *error);
kiln_status_t kiln_copy_memory(const kiln_model_t *model, void *to, const void *from, size_t bytes,
                               kiln_error_t *error);
kiln_status_t kiln_zero_memory(const kiln_model_t *model, void *memory, size_t bytes, kiln_error_t *error);

/* Make what calls keep in an arena zeros: the states; with what a training keeps, before its step 1. */
kiln_status_t kiln_begin_session(const kiln_model_t *model, void *arena, kiln_error_t *error);
kiln_status_t kiln_begin_training(const kiln_model_t *model, void *arena, kiln_error_t *error);

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
/* The same of NAME_<entry>_batch: extents are the sequences'. */
kiln_status_t kiln_run_batch(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, size_t count,
                             const kiln_sequence_t *sequences, void *const *arguments);

/* Called by bodies around a kernel, where frame->tracing is not null; see kiln_event_t. */
void kiln_trace_begin(struct kiln_tracing_t *tracing, const char *kernel, const char *layer, int64_t number,
                      uint64_t flops, uint64_t bytes);
void kiln_trace_end(struct kiln_tracing_t *tracing);

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
