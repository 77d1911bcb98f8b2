/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Kiln's runtime types and status codes.
 *
 * Every generated NAME.h contains this text, under the one guard below, so that two models in a program share the
 * types. The functions are in each archive under the model's own prefix, so NAME.h declares them. None of them prints,
 * aborts, exits, or allocates inside an entry point, except that a GPU driver may allocate in first calls. */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_ABI_VERSION 13
/* Alignment, in bytes, that an arena must have. */
#define KILN_ARENA_ALIGNMENT 64

/* KILN_NULL is a default, so that compilers do not warn about missing initialisers. In C++11 a struct with defaults
 * would be no aggregate. */
#define KILN_NULL
#ifdef __cplusplus
extern "C" {
#if __cplusplus >= 201402L || (defined(_MSVC_LANG) && _MSVC_LANG >= 201402L)
#undef KILN_NULL
#define KILN_NULL = {}
#endif
#endif

/* A cast without a warning of casts in the style of C. */
#ifdef __cplusplus
#define KILN_CAST(type, value) static_cast<type>(value)
#else
#define KILN_CAST(type, value) ((type)(value))
#endif
#define KILN_SIZE_T(number) KILN_CAST(size_t, number)

/* The linkage of functions that headers define. C89 has no inline functions, but most of its compilers have them. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define KILN_INLINE static inline
#elif defined(__GNUC__) || defined(__TINYC__)
#define KILN_INLINE static __inline__
#elif defined(_MSC_VER)
#define KILN_INLINE static __inline
#else
#define KILN_INLINE static
#endif

typedef enum kiln_status_t {
  KILN_OK = 0,
  KILN_NULL_ARGUMENT = 1,       /* a required pointer was null */
  KILN_EXTENT_OUT_OF_RANGE = 2, /* a dynamic dimension is outside its bounds */
  KILN_INDEX_OUT_OF_RANGE = 3,  /* an index or length in an input is outside its table */
  KILN_ARENA_TOO_SMALL = 4,
  KILN_ARENA_MISALIGNED = 5,
  KILN_WEIGHTS_NOT_BOUND = 6,  /* an entry was called before weights were bound */
  KILN_OUT_OF_MEMORY = 7,      /* the allocator, the system or the device is out of memory */
  KILN_UNSUPPORTED_CPU = 8,    /* the CPU supports no instruction set of the archive */
  KILN_FILE_ERROR = 9,         /* a file could not be opened, read or mapped */
  KILN_FILE_MALFORMED = 10,    /* not a well-formed weight file */
  KILN_WEIGHT_MISSING = 11,    /* the file lacks a tensor of the model */
  KILN_WEIGHT_UNEXPECTED = 12, /* the file contains a tensor that the model does not have */
  KILN_WEIGHT_SHAPE = 13,      /* the shape of a tensor differs from the model's */
  KILN_WEIGHT_TYPE = 14,       /* the element type of a tensor cannot be converted to the model's */
  KILN_THREAD_ERROR = 15,      /* the bundled pool could not start its threads */
  KILN_INVALID_ARGUMENT = 16,  /* an option is invalid, such as a pool of zero threads */
  KILN_INTERNAL_ERROR = 17,    /* a bug in Kiln; please report it */
  KILN_NO_DEVICE = 18,         /* no driver, no device, or no code in the archive for any device */
  KILN_DEVICE_ERROR = 19,      /* the device's driver reported an error */
  KILN_DEVICE_LOST = 20,       /* an unrecoverable device error: destroy the model */
  KILN_WEIGHT_VALUE = 21,      /* a tensor has a value that the model's storage format cannot represent */
  KILN_FILE_MISMATCH = 22,     /* a packed file of another library, target or version */
  KILN_NOT_FINITE = 23,        /* loss, gradients or learning rate are NaN or infinite; no weight was changed */
  KILN_SELFTEST_FAILED = 24,   /* the library does not compute the expected results */
  KILN_RANK_LOST = 25,         /* another rank did not take part before the deadline, or has ended */
  KILN_SESSION_NOT_BEGUN = 26  /* the arena starts neither with zeros nor with data of earlier calls */
} kiln_status_t;

/* Where a call writes the message of a failing status: which argument or tensor, the actual and the expected value.
 * The message is always terminated, and truncated if necessary. Every function with this parameter accepts null. */
typedef struct kiln_error_t {
  kiln_status_t status;
  char message[252];
} kiln_error_t;

/* Element types; the values are part of the ABI. */
typedef enum kiln_dtype_t {
  KILN_F32 = 0,
  KILN_F16 = 1,
  KILN_BF16 = 2,
  KILN_I32 = 3,
  KILN_I8 = 4,
  KILN_BOOL = 5,   /* one byte */
  KILN_I4 = 6,     /* two in a byte; only weights */
  KILN_F8E4M3 = 7, /* only weights, as the next two */
  KILN_F4E2M1 = 8, /* two in a byte */
  KILN_F8E8M0 = 9, /* only scales of weights */
  KILN_U4 = 10,    /* two in a byte; only weights, as the next one */
  KILN_I6 = 11     /* four in three bytes */
} kiln_dtype_t;

/* The progress of a training, which save_training stores in addition to weights and states. */
typedef struct kiln_training_t {
  int32_t step; /* the last completed step; 0: none */
  int32_t seed;
} kiln_training_t;

/* The caller's threads. parallel_for runs task(context, i, worker) for each i in [0, count), on any threads, and
 * returns when all are done. worker is a number in [0, workers) that is unique among the tasks that run at the same
 * time; the calling thread is worker 0 if it takes part. A null executor in a call means serial execution. */
typedef struct kiln_executor_t {
  void *self;
  uint32_t workers;
  void (*parallel_for)(void *self, uint32_t count, void (*task)(void *context, uint32_t index, uint32_t worker),
                       void *context);
} kiln_executor_t;

/* Host memory for create and bind_weights. allocate returns null if it fails; alignment is a power of two. */
typedef struct kiln_allocator_t {
  void *self;
  void *(*allocate)(void *self, size_t bytes, size_t alignment);
  void (*release)(void *self, void *memory);
} kiln_allocator_t;

/* Maps tensor names of a checkpoint to the model's, for NAME_bind_weights_renamed, NAME_bind_gguf and
 * NAME_bind_quantized. The first match for a tensor's name applies; a tensor without a match keeps its name. */
typedef struct kiln_rename_t {
  const char *from;                /* a name in the file; one * matches any characters */
  const char *to KILN_NULL;        /* the name in the model, where * stands for the same characters; null: ignore it */
  uint32_t rotary_heads KILN_NULL; /* number of heads whose rows are interleaved in pairs, one row of each half of a
                                      head, as llama.cpp writes Llama's queries and keys; 0: the model's order */
  uint32_t flags KILN_NULL;        /* 0, or a sum of the following */
} kiln_rename_t;
enum {
  KILN_RENAME_ZEROS = 1,   /* a tensor that is ignored must be zero, as biases that GPTQ writers add are; otherwise it
                              is KILN_WEIGHT_UNEXPECTED */
  KILN_RENAME_OPTIONAL = 2 /* need not match a tensor, as in a table that serves many files; otherwise a rename that
                              matches none is KILN_INVALID_ARGUMENT */
};
/* Formats of quantised weights in safetensors files. */
typedef enum kiln_quantization_t {
  KILN_GPTQ = 1,    /* AutoGPTQ's: qzeros store the zero point minus 1 */
  KILN_GPTQ_V2 = 2, /* the same, but qzeros store the zero point itself */
  KILN_AWQ = 3,     /* AutoAWQ's GEMM format */
  KILN_FP8 = 4,     /* e4m3 with NAME.weight_scale or NAME.weight_scale_inv */
  KILN_MXFP4 = 5,   /* NAME is NAME_blocks and NAME_scales */
  KILN_NVFP4 = 6    /* ModelOpt's: NAME.weight of U8, NAME.weight_scale and NAME.weight_scale_2 */
} kiln_quantization_t;

/* The kind of device that runs a model. */
typedef enum kiln_device_t {
  KILN_ANY_DEVICE = 0, /* the first variant in the archive that works on this machine */
  KILN_CPU = 1,
  KILN_CUDA = 2
} kiln_device_t;

/* Flags of kiln_options_t. */
enum {
  /* create does the work of the first calls on a GPU: it assembles all kernels and allocates the pinned memory
   * through which host tensors are copied. */
  KILN_LOAD_KERNELS_AT_CREATE = 1,
  /* Weight files are read into memory before they are bound, which temporarily takes additional memory of the file's
   * size, and a packed file is read into the model's memory. Without this flag files are mapped: if another program
   * truncates one while it is bound, or a packed one while the model lives, or the network or disk that holds it
   * fails, the system ends the process (SIGBUS). With this flag that is a status. */
  KILN_COPY_FILES = 2
};
/* After capture_entries a model keeps this many CUDA graphs of calls. One more replaces the least recently launched
 * one. */
enum { KILN_MAX_CAPTURED_CALLS = 64 };

/* Options of create_on. Members that are not set are null or 0. */
typedef struct kiln_options_t {
  const kiln_allocator_t *allocator KILN_NULL; /* as for create */
  kiln_device_t device KILN_NULL;
  int32_t ordinal KILN_NULL;   /* index of the driver's device, if context is null */
  void *context KILN_NULL;     /* a CUcontext that outlives the model; null: the device's primary context */
  uintptr_t flags KILN_NULL;   /* KILN_LOAD_KERNELS_AT_CREATE, KILN_COPY_FILES, both or 0 */
  uint32_t rank KILN_NULL;     /* tensor-parallel library: the rank of this model, from 0 */
  uint32_t ranks KILN_NULL;    /* and the number of ranks, as the library was compiled for; 0: not stated */
  uint32_t replica KILN_NULL;  /* library with optimiser-state sharding (ZeRO-1): the model's replica */
  uint32_t replicas KILN_NULL; /* and the number of replicas, as it was compiled for; 0: not stated */
  uint32_t stage KILN_NULL;    /* pipeline-parallel library: the stage of this model, from 0 */
  uint32_t stages KILN_NULL;   /* and the number of stages, like ranks */
  void *reserved[2] KILN_NULL; /* null */
} kiln_options_t;

/* A kernel that a call runs, or one of the tasks that the workers of an executor run in parallel. */
typedef struct kiln_event_t {
  const char *entry;  /* "forward" */
  const char *kernel; /* as in the manifest: "gpt_x86_64_v3_linear_gelu_5_mlp_fc1" */
  const char *layer;  /* the part of the model that it belongs to, named like weights: "h.{}.mlp.fc1" */
  int64_t number;     /* the index of the layer, for the "{}", counted over all enclosing stacks; -1: none */
  uint64_t flops;     /* additions and multiplications of its contractions; for a task, those of the kernel */
  uint64_t bytes;     /* bytes of its tensors, each once; for a table an upper bound of those that are read */
  int64_t task;       /* -1: the whole kernel */
  uint32_t worker;    /* the worker that runs it; 0 launches kernels; values from KILN_TRACE_TOGETHER on are concurrent
                         collectives, one at a time for each value */
} kiln_event_t;
enum { KILN_TRACE_TOGETHER = 1 << 16 };

/* Callbacks of a call for its kernels. begin and end of tasks are called concurrently by the executor's threads;
 * their own time counts as the kernels' time. The strings live as long as the program, an event as long as the
 * function runs. On a GPU a traced call waits for each kernel. */
typedef struct kiln_trace_t {
  void *self;
  void (*begin)(void *self, const kiln_event_t *event);
  void (*end)(void *self, const kiln_event_t *event);
} kiln_trace_t;

/* The kinds of collective. A part is `elements` elements; buffers with one part per rank are in the order of ranks. */
typedef enum kiln_collective_kind_t {
  KILN_ALL_REDUCE = 0, /* sums the part `to` over all ranks; from equals to */
  KILN_ALL_GATHER = 1, /* `to` receives the parts of all ranks; from is the own part there, or elsewhere on a device */
  KILN_REDUCE_SCATTER = 2, /* from has a part for each rank; `to` receives the sum of those for this rank. It may be
                              that part of from: all of from is then overwritten, and the other parts are undefined */
  KILN_EXCHANGE = 3,       /* part r of from goes to rank r, and the part of r for this rank becomes part r of to */
  KILN_SEND = 4,           /* sends the part from to the rank `peer` */
  KILN_RECEIVE = 5         /* receives the part `to` from it; messages between two ranks arrive in order */
} kiln_collective_kind_t;

typedef struct kiln_collective_t {
  kiln_collective_kind_t kind;
  uint32_t element; /* a kiln_dtype_t */
  const void *from; /* see kind; null if unused */
  void *to;
  uint64_t elements; /* of a part; not 0 */
  uint32_t peer;     /* for KILN_SEND and KILN_RECEIVE, else 0 */
  void *stream;      /* a CUstream: device buffers, used in its order; null: CPU */
} kiln_collective_t;

/* How a rank of a parallel library reaches the others: implemented by the caller or by an adapter
 * (kiln/communicators/). Data-parallel replicas use a second communicator, whose rank is the replica's number, and
 * pipeline stages a third one, which sends data from one stage to the next. An entry calls it from the thread that
 * calls the entry, one function at a time; all ranks begin the same collectives in the same order. Requirements:
 *   - begin starts a collective and need not wait. The struct is invalid after it returns; the communicator owns the
 *     buffers until the collective is finished: nothing else writes to them, or reads `to`.
 *   - finish waits for the oldest unfinished collective, until a deadline that the communicator defines: then, or if
 *     another rank is known to be gone, it returns KILN_RANK_LOST. With a stream it need not wait for the device:
 *     work that follows in stream order may use the buffers. A later wait for the stream must use the communicator's
 *     means to observe the deadline: a lost rank prevents the stream from completing.
 *   - poll is called between kernels while a collective is pending, for communicators that make progress only while
 *     they are called. It does not wait; null: not needed.
 *   - Sums may be computed in any order, but each rank must get the same bits.
 *   - After a failure each call fails at once with the same status. Pending collectives may still access their
 *     buffers: the memory that entries received (arena, tensors) must stay valid until the communicator is
 *     destroyed, which is the program's responsibility.
 *   - Messages go to `error`, which is never null; Kiln quotes them. Exceptions and longjmp must not leave a
 *     function.
 * A communicator serves one call at a time. */
typedef struct kiln_communicator_t {
  void *self;
  uint32_t rank, size; /* the own rank, and the number of ranks */
  kiln_status_t (*begin)(void *self, const kiln_collective_t *collective, kiln_error_t *error);
  kiln_status_t (*finish)(void *self, kiln_error_t *error);
  void (*poll)(void *self) KILN_NULL;
} kiln_communicator_t;

/* The memory of the tensors that are passed to an entry point of a model on a device. Host pointers: the tensors are
 * copied to the device and back, by one call of a model at a time, and are complete when the call returns. Device
 * pointers: the tensors are used in place, and the call returns when its work is in the stream. Index values are
 * then not checked but clamped. */
enum { KILN_HOST_POINTERS = 0, KILN_DEVICE_POINTERS = 1 };

/* The arguments of every entry point besides its tensors. One model may run in several threads at once, each with
 * its own arena. Members that are not set are null, in C and in C++: {.arena = .., .arena_bytes = ..}. */
typedef struct kiln_call_t {
  void *arena; /* aligned to KILN_ARENA_ALIGNMENT, in the model's memory space. Its first NAME_STATE_BYTES, for a model
                  with states, and NAME_TRAINING_BYTES, for training entries, must be kept between calls:
                  NAME_begin_session and NAME_begin_training, or zeros, initialise them. The rest need not be kept */
  size_t arena_bytes;              /* at least NAME_<ENTRY>_ARENA_BYTES(workers) */
  const kiln_executor_t *executor; /* null: serial; unused on a GPU */
  kiln_error_t *error;             /* null: no message */
  void *stream KILN_NULL;     /* a CUstream of the model's context; null: the model's own stream; unused on a CPU */
  uintptr_t memory KILN_NULL; /* KILN_HOST_POINTERS, the only choice on a CPU, or KILN_DEVICE_POINTERS */
  const kiln_trace_t *trace KILN_NULL;               /* null: no tracing, at no cost */
  const kiln_communicator_t *communicator KILN_NULL; /* tensor-parallel libraries, else null */
  const kiln_communicator_t *replicas KILN_NULL;     /* data-parallel training, else null */
  const kiln_communicator_t *stages KILN_NULL;       /* pipeline-parallel libraries, else null */
  void *reserved[1] KILN_NULL;                       /* null: reserved for later versions */
} kiln_call_t;

/* One of the sequences of a NAME_<ENTRY>_batch call: the arguments of a call of the entry for this sequence. */
typedef struct kiln_sequence_t {
  void *states;           /* its own NAME_STATE_BYTES, aligned and placed like an arena; an arena starts with them */
  const int64_t *extents; /* the entry's dimensions, in the order of its parameters; null if it has none */
} kiln_sequence_t;

/* The bundled thread pool: NAME_pool_create starts it, NAME_pool_executor returns the executor for kiln_call_t. */
typedef struct kiln_pool_t kiln_pool_t;

#undef KILN_NULL

#ifdef __cplusplus
}
#endif
#endif /* KILN_RUNTIME_H */
