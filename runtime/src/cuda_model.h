/* SPDX-License-Identifier: Apache-2.0 */
/* What the run time's files about CUDA share: the state of a model on a GPU. No other file of the run time sees this,
 * so that a program whose model runs on the CPU alone links none of it. */
#ifndef KILN_CUDA_MODEL_H
#define KILN_CUDA_MODEL_H

#include "cuda_driver.h"

#include <pthread.h>
#ifdef __cplusplus /* the tuner's */
#include <atomic>
using std::atomic_bool;
extern "C" {
#else
#include <stdatomic.h>
#endif

/* A kernel of the variant, in a slot of the hash table. */
typedef struct kiln_cuda_kernel_t {
  const kiln_cuda_module_t *module; /* null: the slot is free */
  kiln_cuda_loaded_t loaded;        /* null: not yet */
  kiln_cuda_entry_t *functions;     /* one a function of the module */
  atomic_bool is_loaded;            /* what stands above may be read without the lock */
} kiln_cuda_kernel_t;

/* model->device, in one block with the tables that it points to. */
typedef struct kiln_cuda_t {
  kiln_cuda_driver_t driver;
  kiln_cuda_context_t context; /* null until there is one */
  bool is_primary;             /* the context was retained */
  int device;
  uint32_t capability;      /* 80 is 8.0 */
  kiln_cuda_queue_t stream; /* the model's own */
  kiln_cuda_address_t constants;
  atomic_bool is_lost;

  pthread_mutex_t loading; /* held while a kernel is loaded */
  kiln_cuda_kernel_t *kernels;
  uint64_t kernel_mask; /* slots - 1, a power of two */

  pthread_mutex_t staging; /* held by the call whose arguments are in host memory */
  char *staged;            /* pinned memory for the arguments of any entry */
  void **placed;           /* their addresses on the device */
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

/* cuda_kernel.c: all within enter and leave, but for find and check. */

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

/* cuda_memory.c, cuda_run.c: functions of the backend */

kiln_status_t kiln_cuda_bind(kiln_model_t *model, const char *packed, kiln_error_t *error);
kiln_status_t kiln_cuda_allocate(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error);
void kiln_cuda_release(const kiln_model_t *model, void *memory);
kiln_status_t kiln_cuda_copy(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                             kiln_error_t *error);
kiln_status_t kiln_cuda_run(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry, const int64_t *extents,
                            void *const *arguments);

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
