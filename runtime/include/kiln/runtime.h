/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Kiln's run-time types and status codes.
 *
 * Every generated NAME.h carries this text, under the one guard below, so that two models in a program share the types.
 * The functions live in each archive under the model's own prefix, so NAME.h declares them. None of them prints,
 * aborts, exits, or allocates inside an entry point, but that a GPU's driver may in first calls. */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_ABI_VERSION 12
/* Alignment, in bytes, that an arena must have. */
#define KILN_ARENA_ALIGNMENT 64

#ifdef __cplusplus
extern "C" {
#define KILN_NULL = {} /* a default, so that compilers do not ask for a value */
#else
#define KILN_NULL
#endif

typedef enum kiln_status_t {
  KILN_OK = 0,
  KILN_NULL_ARGUMENT = 1,       /* a required pointer was null */
  KILN_EXTENT_OUT_OF_RANGE = 2, /* a run-time extent lies outside the bounds of its dimension */
  KILN_INDEX_OUT_OF_RANGE = 3,  /* an index or length in an input lies outside its table */
  KILN_ARENA_TOO_SMALL = 4,
  KILN_ARENA_MISALIGNED = 5,
  KILN_WEIGHTS_NOT_BOUND = 6,  /* an entry was called before weights were bound */
  KILN_OUT_OF_MEMORY = 7,      /* the allocator, the system or the device gave no memory */
  KILN_UNSUPPORTED_CPU = 8,    /* no instruction set in the archive runs on this CPU */
  KILN_FILE_ERROR = 9,         /* a file could not be opened, read or mapped */
  KILN_FILE_MALFORMED = 10,    /* not a well-formed weight file */
  KILN_WEIGHT_MISSING = 11,    /* the model needs a tensor that the file lacks */
  KILN_WEIGHT_UNEXPECTED = 12, /* the file holds a tensor that the model does not know */
  KILN_WEIGHT_SHAPE = 13,      /* a tensor has another shape than the model's */
  KILN_WEIGHT_TYPE = 14,       /* a tensor has an element type that the model's is not made from */
  KILN_THREAD_ERROR = 15,      /* the bundled pool could not start its threads */
  KILN_INVALID_ARGUMENT = 16,  /* an option has no meaning, such as a pool of zero threads */
  KILN_INTERNAL_ERROR = 17,    /* a defect of Kiln; please report it */
  KILN_NO_DEVICE = 18,         /* no driver, no device, or none that the archive has code for */
  KILN_DEVICE_ERROR = 19,      /* the device's driver reported an error */
  KILN_DEVICE_LOST = 20,       /* an error that the device does not recover from: destroy the model */
  KILN_WEIGHT_VALUE = 21,      /* a tensor has a number that cannot be stored as the model stores it */
  KILN_FILE_MISMATCH = 22,     /* a packed file of another library, target or version */
  KILN_NOT_FINITE = 23,        /* loss, gradients or learning rate are NaN or infinite; no weight was changed */
  KILN_SELFTEST_FAILED = 24,   /* the library computes other numbers than it was made to */
  KILN_RANK_LOST = 25,         /* another rank did not take part before the deadline, or is gone */
  KILN_SESSION_NOT_BEGUN = 26  /* the arena begins neither with zeros nor with what earlier calls left */
} kiln_status_t;

/* Where a call puts the words that go with a failing status: which argument or tensor, what was found, what was wanted.
 * The message is always terminated, cut if need be. Every function that takes one accepts null. */
typedef struct kiln_error_t {
  kiln_status_t status;
  char message[252];
} kiln_error_t;

/* Element types, by their numbers. */
typedef enum kiln_dtype_t {
  KILN_F32 = 0,
  KILN_F16 = 1,
  KILN_BF16 = 2,
  KILN_I32 = 3,
  KILN_I8 = 4,
  KILN_BOOL = 5, /* a byte */
  KILN_I4 = 6    /* two in a byte; of weights alone */
} kiln_dtype_t;

/* How far a training is: what save_training keeps beside weights and states. */
typedef struct kiln_training_t {
  int32_t step; /* the last one that was made; 0: none */
  int32_t seed;
} kiln_training_t;

/* The caller's threads. parallel_for runs task(context, i, worker) for each i in [0, count), on any threads, and
 * returns when all are done. worker is a number in [0, workers) that no two tasks running at the same time share; the
 * calling thread is worker 0 if it takes part. A null executor in a call means serial. */
typedef struct kiln_executor_t {
  void *self;
  uint32_t workers;
  void (*parallel_for)(void *self, uint32_t count, void (*task)(void *context, uint32_t index, uint32_t worker),
                       void *context);
} kiln_executor_t;

/* Host memory for create and bind_weights. allocate returns null when it has none; alignment is a power of two. */
typedef struct kiln_allocator_t {
  void *self;
  void *(*allocate)(void *self, size_t bytes, size_t alignment);
  void (*release)(void *self, void *memory);
} kiln_allocator_t;

/* How tensors of a checkpoint are called in the model, for NAME_bind_weights_renamed, NAME_bind_gguf and
 * NAME_bind_quantized. Of several that fit a tensor's name the first counts; a tensor that none fits keeps its name. */
typedef struct kiln_rename_t {
  const char *from;                /* a name in the file; one * stands for any characters */
  const char *to KILN_NULL;        /* the name in the model, with the same characters for its *; null: it is left out */
  uint32_t rotary_heads KILN_NULL; /* the rows are those of so many heads, and of each head lie in pairs, one of each
                                      half, as llama.cpp writes Llama's queries and keys; 0: as the model wants them */
  uint32_t flags KILN_NULL;        /* KILN_RENAME_ZEROS or 0 */
} kiln_rename_t;
/* What is left out must be zeros, as biases are that GPTQ's writers add; else it is KILN_WEIGHT_UNEXPECTED. */
enum { KILN_RENAME_ZEROS = 1 };
/* How 4 bits a number are written into safetensors files. */
typedef enum kiln_quantization_t {
  KILN_GPTQ = 1,    /* AutoGPTQ's: qzeros hold what stands for 0, less 1 */
  KILN_GPTQ_V2 = 2, /* the same, qzeros hold it itself */
  KILN_AWQ = 3      /* AutoAWQ's for GEMM */
} kiln_quantization_t;

/* What runs a model. */
typedef enum kiln_device_t {
  KILN_ANY_DEVICE = 0, /* the first in the archive that works here */
  KILN_CPU = 1,
  KILN_CUDA = 2
} kiln_device_t;

/* Of kiln_options_t. */
enum {
  /* What first calls on a GPU would do is done at create: all kernels are assembled, and the pinned memory is allocated
   * through which tensors of the host go. */
  KILN_LOAD_KERNELS_AT_CREATE = 1,
  /* Files of weights are read into memory before they are bound, which so takes a file's size more meanwhile, and a
   * packed file is read into the model's memory. Without, files are mapped: if another program cuts one while it is
   * bound, or a packed one while the model lives, or the network or disk that it is on fails, the system ends the
   * process (SIGBUS). With it that is a status. */
  KILN_COPY_FILES = 2
};
/* After capture_entries a model keeps the CUDA graphs of so many calls. One more takes the place of that which was not
 * launched for longest. */
enum { KILN_MAX_CAPTURED_CALLS = 64 };

/* What create_on takes. What is not named is null or 0. */
typedef struct kiln_options_t {
  const kiln_allocator_t *allocator KILN_NULL; /* as of create */
  kiln_device_t device KILN_NULL;
  int32_t ordinal KILN_NULL;   /* which of the driver's devices, if context is null */
  void *context KILN_NULL;     /* a CUcontext that outlives the model; null: the primary one of the device */
  uintptr_t flags KILN_NULL;   /* KILN_LOAD_KERNELS_AT_CREATE, KILN_COPY_FILES, both or 0 */
  uint32_t rank KILN_NULL;     /* of a library for several ranks: which of them the model is, from 0 on */
  uint32_t ranks KILN_NULL;    /* and how many there are, as the library was compiled for; 0: not said */
  uint32_t replica KILN_NULL;  /* of a library whose replicas share out what optimisers keep: which the model is */
  uint32_t replicas KILN_NULL; /* and how many there are, as it was compiled for; 0: not said */
  uint32_t stage KILN_NULL;    /* of a library for several stages: which of them the model is, from 0 on */
  uint32_t stages KILN_NULL;   /* and how many there are, as of ranks */
  void *reserved[2] KILN_NULL; /* null */
} kiln_options_t;

/* A kernel that a call runs, or one of the tasks that the workers of an executor share. */
typedef struct kiln_event_t {
  const char *entry;  /* "forward" */
  const char *kernel; /* as in the manifest: "gpt_x86_64_v3_linear_gelu_5_mlp_fc1" */
  const char *layer;  /* the part of the model that it is of, as weights are named: "h.{}.mlp.fc1" */
  int64_t number;     /* the layer's, for the "{}", counted over all stacks around; -1: it is in none */
  uint64_t flops;     /* additions and multiplications of its products; of a task, too, the kernel's */
  uint64_t bytes;     /* of its tensors, each once; of a table those that are read, at most */
  int64_t task;       /* -1: all of the kernel */
  uint32_t worker; /* that runs it; 0 calls kernels; from KILN_TRACE_TOGETHER on: what processes do together meanwhile,
                      each number one at a time */
} kiln_event_t;
enum { KILN_TRACE_TOGETHER = 1 << 16 };

/* What a call tells of its kernels. begin and end of tasks come from the executor's threads, at the same time; whatever
 * they do counts as the kernels' time. The strings live as long as the program, an event as long as the function runs.
 * On a GPU a traced call waits for each kernel. */
typedef struct kiln_trace_t {
  void *self;
  void (*begin)(void *self, const kiln_event_t *event);
  void (*end)(void *self, const kiln_event_t *event);
} kiln_trace_t;

/* What ranks do together. A part is `elements` elements, those of rank r the r-th where there is one of each rank. */
typedef enum kiln_collective_kind_t {
  KILN_ALL_REDUCE = 0,     /* `to`, a part, becomes the sum of those of all ranks; from is to */
  KILN_ALL_GATHER = 1,     /* `to` becomes a part of each rank; the own one is there, and from points at it; it may lie
                              elsewhere on a device */
  KILN_REDUCE_SCATTER = 2, /* from has a part for each rank; `to` becomes the sum of those for this one. It may be that
                              part itself, in its place: all of from is then written to, and the others' parts of no
                              use */
  KILN_EXCHANGE = 3,       /* part r of from goes to rank r, and what that has for this rank becomes part r of to */
  KILN_SEND = 4,           /* from, a part, goes to the rank `peer` */
  KILN_RECEIVE = 5         /* `to`, a part, comes from there; what one rank sends to another comes in its order */
} kiln_collective_kind_t;

typedef struct kiln_collective_t {
  kiln_collective_kind_t kind;
  uint32_t element; /* a kiln_dtype_t */
  const void *from; /* as the kind says, null if it says nothing */
  void *to;
  uint64_t elements; /* of a part; not 0 */
  uint32_t peer;     /* of KILN_SEND and KILN_RECEIVE, else 0 */
  void *stream;      /* a CUstream: the buffers are a device's, ready and wanted in its order; null: on a CPU */
} kiln_collective_t;

/* How a rank of a library for several reaches the others: the caller's, or an adapter's (kiln/communicators/). The
 * replicas of a training reach one another by a second one, whose rank is the replica's number, the stages of a model
 * by a third one, which moves what one of them sends and the next one receives. An entry calls it from the thread that
 * calls the entry, one function at a time; all ranks begin the same collectives in the same order. What it must do:
 *   - begin starts a collective and need not wait. The struct is gone when it returns; the buffers are the
 *     communicator's until the collective is finished: nobody else writes to them, or reads `to`.
 *   - finish waits for the oldest that was begun and is not finished, until a deadline that the communicator knows:
 *     then, or if another rank is known to be gone, KILN_RANK_LOST. With a stream it need not wait for the device:
 *     what follows in the stream's order may use the buffers. Who waits for the stream afterwards, waits until that
 *     deadline, too, by means of the communicator's: a lost rank keeps the stream from its end.
 *   - poll is called between kernels while something is under way, for those that only move bytes while they are
 *     called. It does not wait; null: of no use.
 *   - Sums may be made in any order, but each rank gets the same bits.
 *   - After a failure each call fails at once, with that status. What was begun may still read and write its buffers:
 *     the memory that entries were given (arena, tensors) stays as it is until the communicator is gone, for which the
 *     program cares.
 *   - Words go to the error, which is never null; they are cited. Nothing is thrown or jumped across.
 * A communicator serves one call at a time. */
typedef struct kiln_communicator_t {
  void *self;
  uint32_t rank, size; /* this one's number, below how many there are */
  kiln_status_t (*begin)(void *self, const kiln_collective_t *collective, kiln_error_t *error);
  kiln_status_t (*finish)(void *self, kiln_error_t *error);
  void (*poll)(void *self) KILN_NULL;
} kiln_communicator_t;

/* Where the tensors lie that an entry point of a model on a device is given. In host memory: they are copied there and
 * back, by one call of a model at a time, and are done when the call returns. In the device's: they are used where they
 * are, and the call returns when its work is in the stream. Values of indices are then not checked but clamped. */
enum { KILN_HOST_POINTERS = 0, KILN_DEVICE_POINTERS = 1 };

/* What every entry point takes besides its tensors. One model may run in several threads at once, each with its own
 * arena. What is not named is null, in C and in C++: {.arena = .., .arena_bytes = ..}. */
typedef struct kiln_call_t {
  void *arena;                         /* KILN_ARENA_ALIGNMENT aligned, where the model's memory is. Its first
                                          NAME_STATE_BYTES, of a model with states, and NAME_TRAINING_BYTES, of entries that
                                          train, are kept between calls: NAME_begin_session and NAME_begin_training, or
                                          zeros, begin them. The rest need not be kept */
  size_t arena_bytes;                  /* at least NAME_<ENTRY>_ARENA_BYTES(workers) */
  const kiln_executor_t *executor;     /* null: serial; of no use on a GPU */
  kiln_error_t *error;                 /* null: no words */
  void *stream KILN_NULL;              /* a CUstream of the model's context; null: the model's own, and on a CPU */
  uintptr_t memory KILN_NULL;          /* KILN_HOST_POINTERS, the one choice on a CPU, or KILN_DEVICE_POINTERS */
  const kiln_trace_t *trace KILN_NULL; /* null: nobody asks, and it costs nothing */
  const kiln_communicator_t *communicator KILN_NULL; /* of a library for several ranks, else null */
  const kiln_communicator_t *replicas KILN_NULL;     /* of a training of several replicas, else null */
  const kiln_communicator_t *stages KILN_NULL;       /* of a library for several stages, else null */
  void *reserved[1] KILN_NULL;                       /* null: room for what later versions take */
} kiln_call_t;

/* One of the sequences that NAME_<ENTRY>_batch is called for: what a call of the entry alone would be given for it. */
typedef struct kiln_sequence_t {
  void *states;           /* NAME_STATE_BYTES of its own, aligned and placed as an arena; an arena begins with them */
  const int64_t *extents; /* those of the entry, in the order of its parameters; null if it has none */
} kiln_sequence_t;

/* The bundled thread pool: NAME_pool_create starts it, NAME_pool_executor gives what goes in kiln_call_t. */
typedef struct kiln_pool_t kiln_pool_t;

#undef KILN_NULL

#ifdef __cplusplus
}
#endif
#endif /* KILN_RUNTIME_H */
