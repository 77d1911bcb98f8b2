/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the run time's files about CUDA share: the state of a model on a GPU. No other file of the run time sees this,
 * so that a program whose model runs on the CPU alone links none of it. */
#ifndef KILN_CUDA_MODEL_H
#define KILN_CUDA_MODEL_H

#include "cuda_driver.h"

#include <pthread.h>
#ifdef __cplusplus /* the tuner's */
#include <atomic>
using std::atomic_bool;
using std::atomic_ullong;
extern "C" {
#else
#include <stdatomic.h>
#endif

/* A form of a kernel: its module, or module->mapped. */
typedef struct kiln_cuda_form_t {
  const kiln_cuda_module_t *module; /* null: the kernel has none */
  kiln_cuda_loaded_t loaded;        /* null: not yet, or there is none for the GPU and the driver */
  uint32_t image;                   /* of the module: the one that is loaded, or whose code is below */
  kiln_cuda_entry_t *functions;     /* one a function of the module */
  kiln_cuda_link_t link;            /* while an image is made: what holds the code; else null */
  void *code;
  size_t code_bytes; /* 0: there is none for the GPU and the driver */
} kiln_cuda_form_t;
enum { KILN_CUDA_PLAIN, KILN_CUDA_MAPPED, KILN_CUDA_FORMS };

/* An assembled image of a form; null: there is none for the GPU and the driver. */
typedef struct kiln_cuda_code_t {
  const void *code;
  uint32_t image; /* of the module */
} kiln_cuda_code_t;

/* A kernel of the variant, in a slot of the hash table. */
typedef struct kiln_cuda_kernel_t {
  kiln_cuda_form_t forms[KILN_CUDA_FORMS]; /* no module of the plain one: the slot is free */
  atomic_bool is_loaded;                   /* the forms may be read without the lock */
} kiln_cuda_kernel_t;

struct kiln_cuda_t;
struct kiln_cuda_stream_t;
/* What kiln_run was called with, but for the arguments. */
typedef struct kiln_cuda_request_t {
  const kiln_model_t *model;
  const kiln_call_t *call;
  uint32_t entry;
  const int64_t *extents;
  const kiln_sequence_t *sequences;
} kiln_cuda_request_t;

/* The head of what calls are recorded by. It comes with its functions, so that they are linked only where a program
 * asks for recording. */
typedef struct kiln_cuda_recorder_t {
  kiln_status_t (*run)(const kiln_cuda_request_t *request, struct kiln_cuda_stream_t *stream, void *const *arguments);
  void (*empty)(struct kiln_cuda_t *cuda); /* lets go of what the context holds */
} kiln_cuda_recorder_t;

/* model->device, in one block with the tables that it points to. */
typedef struct kiln_cuda_t {
  kiln_cuda_driver_t driver;
  kiln_cuda_context_t context; /* null until there is one */
  bool is_primary;             /* the context was retained */
  int device;
  uint32_t capability;      /* 80 is 8.0 */
  bool launches_early;      /* kernels that can be launched before those in front of them are done, are */
  kiln_cuda_queue_t stream; /* the model's own */
  kiln_cuda_address_t constants;
  atomic_bool is_lost;

  pthread_mutex_t loading; /* held while a kernel is loaded or the image made */
  kiln_cuda_kernel_t *kernels;
  uint64_t kernel_mask;     /* slots - 1, a power of two */
  atomic_ullong assembling; /* nanoseconds that the assembler took so far */
  bool is_from_image;       /* all kernels came from an image */
  void *image;              /* what kiln_cuda_image gave; null: not yet */
  size_t image_bytes;

  pthread_mutex_t staging; /* held by the call whose arguments are in host memory */
  char *staged;            /* pinned memory for the arguments of any entry; null: not yet */
  void **placed;           /* their addresses on the device */

  kiln_cuda_recorder_t *recorder; /* cuda_graph.c; null: calls are not recorded */
} kiln_cuda_t;

/* Where the work of a call goes; on its stack. */
typedef struct kiln_cuda_stream_t {
  kiln_cuda_t *cuda;
  kiln_cuda_queue_t queue;
  kiln_error_t error; /* the first of the call */
} kiln_cuda_stream_t;

/* Calls the driver: a status, with words about the error. */
#define KILN_CUDA_CALL(cuda, error, symbol, ...)                                                                       \
  kiln_cuda_check(cuda, (cuda)->driver.symbol(__VA_ARGS__), #symbol, error)

/* cuda.c */

/* A CUresult as a status. Notes when the context is of no use from now on. */
kiln_status_t kiln_cuda_check(kiln_cuda_t *cuda, int result, const char *symbol, kiln_error_t *error);
/* Makes the model's context the thread's until leave, which brings back the one before; refuses one that is lost. */
kiln_status_t kiln_cuda_enter(kiln_cuda_t *cuda, kiln_error_t *error);
void kiln_cuda_leave(kiln_cuda_t *cuda);

/* cuda_kernel.c: all within enter and leave, but for those that find and check. */

/* Bytes of the hash table with the functions of its kernels. */
uint64_t kiln_cuda_kernels_bytes(const kiln_variant_t *variant);
/* Makes the table, in so many bytes that are zero. */
void kiln_cuda_kernels_init(kiln_cuda_t *cuda, const kiln_variant_t *variant, void *memory);
/* KILN_NO_DEVICE: some kernel has no image for the GPU. */
kiln_status_t kiln_cuda_kernels_check(const kiln_cuda_t *cuda, const kiln_model_t *model, kiln_error_t *error);
kiln_status_t kiln_cuda_kernels_load(kiln_cuda_t *cuda, kiln_error_t *error);
void kiln_cuda_kernels_unload(kiln_cuda_t *cuda);
/* Null: not one of the variant. */
kiln_cuda_kernel_t *kiln_cuda_kernel_find(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module);
/* Loads the kernel, unless it is. queue: the one that wants it; null: none. */
kiln_status_t kiln_cuda_kernel_load(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, kiln_cuda_queue_t queue,
                                    kiln_error_t *error);

/* The same with the lock on loading held. codes: of each form; null: the driver assembles. */
kiln_status_t kiln_cuda_kernel_load_code(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, const kiln_cuda_code_t *codes,
                                         kiln_error_t *error);
/* Whether the GPU and the driver may have the form. */
bool kiln_cuda_has_form(const kiln_cuda_t *cuda, const kiln_cuda_kernel_t *kernel, uint32_t form);
/* The first PTX from `first` on that is for the GPU; image_count: none. */
uint32_t kiln_cuda_find_ptx(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module, uint32_t first);

/* cuda_memory.c, cuda_run.c */

/* Pinned memory for the arguments of the entry that has most, unless there is; with the lock on staging held, or before
 * the first call. */
kiln_status_t kiln_cuda_allocate_staging(const kiln_model_t *model, kiln_error_t *error);
/* Runs the body of the entry: what it enqueues goes to stream->queue. */
kiln_status_t kiln_cuda_run_body(const kiln_cuda_request_t *request, kiln_cuda_stream_t *stream,
                                 void *const *arguments);
/* Functions of the backend. */
kiln_status_t kiln_cuda_bind(kiln_model_t *model, const char *packed, kiln_error_t *error);
kiln_status_t kiln_cuda_allocate(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error);
void kiln_cuda_release(const kiln_model_t *model, void *memory);
kiln_status_t kiln_cuda_copy(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                             kiln_error_t *error);
kiln_status_t kiln_cuda_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                            const kiln_extents_t *extents, void *const *arguments);

/* Addresses of a device travel as pointers, which nothing on the host follows. */
static inline kiln_cuda_address_t kiln_cuda_address(const void *memory) { return (uintptr_t)memory; }
static inline void *kiln_cuda_pointer(kiln_cuda_address_t address) {
  const union {
    uintptr_t number;
    void *pointer;
  } same = {(uintptr_t)address};
  return same.pointer;
}

#ifdef __cplusplus
}
#endif
#endif /* KILN_CUDA_MODEL_H */
