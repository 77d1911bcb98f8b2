/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Declarations shared by the runtime's CUDA files: the state of a model on a GPU. No other file of the runtime
 * includes this, so that a program whose model runs only on the CPU links none of it. */
#ifndef KILN_CUDA_MODEL_H
#define KILN_CUDA_MODEL_H

#include "core/instance.h"
#include "cuda/cuda_driver.h"

#include <pthread.h>
#ifdef __cplusplus /* for the tuner */
#include <atomic>
using std::atomic_bool;
using std::atomic_ullong;
extern "C" {
#else
#include <stdatomic.h>
#endif

/* A form of a kernel: its module, or module->tma (the TMA variant). */
typedef struct kiln_cuda_form_t {
  const kiln_cuda_module_t *module; /* null: the kernel does not have this form */
  kiln_cuda_loaded_t loaded;        /* null: not yet, or not supported by GPU or driver */
  uint32_t image;                   /* index of the module's image that is loaded, or whose code is in `code` */
  kiln_cuda_entry_t *functions;     /* one per function of the module */
  kiln_cuda_link_t link;            /* owns the code while an image is created; else null */
  void *code;
  size_t code_bytes; /* 0: not supported by GPU or driver */
} kiln_cuda_form_t;
enum { KILN_CUDA_PLAIN, KILN_CUDA_TMA, KILN_CUDA_FORMS };

/* An assembled image of a form; null: not supported by GPU or driver. */
typedef struct kiln_cuda_code_t {
  const void *code;
  uint32_t image; /* index in the module */
} kiln_cuda_code_t;

/* A kernel of the variant, in a slot of the hash table. */
typedef struct kiln_cuda_kernel_t {
  kiln_cuda_form_t forms[KILN_CUDA_FORMS]; /* if the plain form has no module, the slot is free */
  atomic_bool is_loaded;                   /* if set, the forms may be read without the lock */
} kiln_cuda_kernel_t;

struct kiln_cuda_t;
struct kiln_cuda_stream_t;
/* The arguments of kiln_run, except the tensors. */
typedef struct kiln_cuda_request_t {
  const kiln_model_t *model;
  const kiln_call_t *call;
  uint32_t entry;
  const int64_t *extents;
  const kiln_sequence_t *sequences;
} kiln_cuda_request_t;

/* The interface of the CUDA graph recorder. It has function pointers so that the recorder is linked only if a
 * program calls capture_entries. */
typedef struct kiln_cuda_recorder_t {
  kiln_status_t (*run)(const kiln_cuda_request_t *request, struct kiln_cuda_stream_t *stream, void *const *arguments);
  void (*empty)(struct kiln_cuda_t *cuda); /* releases the objects in the context */
} kiln_cuda_recorder_t;

/* model->device, in one block with the tables that it points to. */
typedef struct kiln_cuda_t {
  kiln_cuda_driver_t driver;
  kiln_cuda_context_t context; /* null until created */
  bool is_primary;             /* the context was retained */
  int device;
  uint32_t capability;       /* 80 is 8.0 */
  bool has_dependent_launch; /* kernels that support programmatic dependent launch use it */
  kiln_cuda_queue_t stream;  /* the model's own */
  kiln_cuda_address_t constants;
  atomic_bool is_lost;

  pthread_mutex_t loading; /* held while a kernel is loaded or the image is created */
  kiln_cuda_kernel_t *kernels;
  uint64_t kernel_mask;     /* slots - 1, a power of two */
  atomic_ullong assembling; /* total nanoseconds of PTX assembly */
  bool is_from_image;       /* all kernels were loaded from an image */
  void *image;              /* the result of kiln_cuda_image; null: not yet */
  size_t image_bytes;

  pthread_mutex_t staging; /* held by the call whose arguments are in host memory */
  char *staged;            /* pinned memory for the arguments of any entry; null: not yet */
  void **placed;           /* their addresses on the device */

  kiln_cuda_recorder_t *recorder; /* cuda_graph.c; null: calls are not captured */
} kiln_cuda_t;

/* The stream of a call; allocated on the call's stack. */
typedef struct kiln_cuda_stream_t {
  kiln_cuda_t *cuda;
  kiln_cuda_queue_t queue;
  kiln_error_t error; /* the first error of the call */
} kiln_cuda_stream_t;

/* Calls the driver and returns a status, with an error message. */
#define KILN_CUDA_CALL(cuda, error, symbol, ...)                                                                       \
  kiln_cuda_check(cuda, (cuda)->driver.symbol(__VA_ARGS__), #symbol, error)

/* cuda.c */

/* Converts a CUresult to a status. Records that the context is lost, if the error says so. */
kiln_status_t kiln_cuda_check(kiln_cuda_t *cuda, int result, const char *symbol, kiln_error_t *error);
/* Makes the model's context current in this thread until kiln_cuda_leave, which restores the previous one; fails if
 * it is lost. */
kiln_status_t kiln_cuda_enter(kiln_cuda_t *cuda, kiln_error_t *error);
void kiln_cuda_leave(kiln_cuda_t *cuda);

/* cuda_kernel.c: must be called between enter and leave, except kiln_cuda_kernel_find and kiln_cuda_kernels_check. */

/* The size of the hash table, including the functions of its kernels. */
uint64_t kiln_cuda_kernels_bytes(const kiln_variant_t *variant);
/* Initialises the table in zeroed memory of that size. */
void kiln_cuda_kernels_init(kiln_cuda_t *cuda, const kiln_variant_t *variant, void *memory);
/* KILN_NO_DEVICE: a kernel has no image for the GPU. */
kiln_status_t kiln_cuda_kernels_check(const kiln_cuda_t *cuda, const kiln_model_t *model, kiln_error_t *error);
kiln_status_t kiln_cuda_kernels_load(kiln_cuda_t *cuda, kiln_error_t *error);
void kiln_cuda_kernels_unload(kiln_cuda_t *cuda);
/* Null: not a kernel of the variant. */
kiln_cuda_kernel_t *kiln_cuda_kernel_find(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module);
/* Loads the kernel unless it is loaded. queue: the stream of the launch; null: none. */
kiln_status_t kiln_cuda_kernel_load(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, kiln_cuda_queue_t queue,
                                    kiln_error_t *error);

/* Like kiln_cuda_kernel_load, with the lock on loading held. codes: one per form; null: the driver assembles PTX. */
kiln_status_t kiln_cuda_kernel_load_code(kiln_cuda_t *cuda, kiln_cuda_kernel_t *kernel, const kiln_cuda_code_t *codes,
                                         kiln_error_t *error);
/* Whether GPU and driver may support the form. */
bool kiln_cuda_has_form(const kiln_cuda_t *cuda, const kiln_cuda_kernel_t *kernel, uint32_t form);
/* Returns the first PTX from index `first` on that supports the GPU; image_count: there is none. */
uint32_t kiln_cuda_find_ptx(const kiln_cuda_t *cuda, const kiln_cuda_module_t *module, uint32_t first);

/* cuda_memory.c, cuda_run.c */

/* Allocates pinned memory for the arguments of the largest entry, unless it exists; requires the lock on staging, or
 * that there has been no call. */
kiln_status_t kiln_cuda_allocate_staging(const kiln_model_t *model, kiln_error_t *error);
/* Runs the body of the entry, which enqueues work in stream->queue. */
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

/* Device addresses are passed as pointers, which the host never dereferences. */
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
