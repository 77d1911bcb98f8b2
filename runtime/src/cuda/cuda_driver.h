/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The part of the CUDA driver API that the runtime calls, declared here: building Kiln, or a program with a Kiln
 * model, needs no CUDA toolkit, and running it on a machine without a driver is no error. The names are those of the
 * library's symbols, the numbers those of the driver's ABI, which are the same in all versions. */
#ifndef KILN_CUDA_DRIVER_H
#define KILN_CUDA_DRIVER_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUctx_st *kiln_cuda_context_t;
typedef struct CUmod_st *kiln_cuda_loaded_t;
typedef struct CUfunc_st *kiln_cuda_entry_t;
typedef struct CUstream_st *kiln_cuda_queue_t;
typedef struct CUlinkState_st *kiln_cuda_link_t;
typedef struct CUgraph_st *kiln_cuda_recording_t;
typedef struct CUgraphExec_st *kiln_cuda_executable_t;
typedef uint64_t kiln_cuda_address_t;

/* Requirements of programmatic dependent launch: compute capability, and drivers since 12.3, whose graphs preserve
 * it. */
enum { KILN_CUDA_DEPENDENT_LAUNCH_CAPABILITY = 90, KILN_CUDA_DEPENDENT_LAUNCH_VERSION = 12030 };
/* CUresult. */
enum { KILN_CUDA_OUT_OF_MEMORY = 2, KILN_CUDA_UNSUPPORTED_PTX_VERSION = 222 };
/* CUdevice_attribute, CUfunction_attribute, CUstream_flags, CUstreamCaptureMode, CUmemorytype, CUlaunchAttributeID,
 * CUjitInputType. */
enum {
  KILN_CUDA_MULTIPROCESSORS = 16,
  KILN_CUDA_CAPABILITY_MAJOR = 75,
  KILN_CUDA_CAPABILITY_MINOR = 76,
  KILN_CUDA_MAX_DYNAMIC_SHARED_BYTES = 8,
  KILN_CUDA_NON_BLOCKING = 1,
  KILN_CUDA_CAPTURE_THREAD_LOCAL = 1,
  KILN_CUDA_MEMORY_OF_DEVICE = 2,
  KILN_CUDA_CLUSTER_DIMENSION = 4,
  KILN_CUDA_PROGRAMMATIC_SERIALIZATION = 6,
  KILN_CUDA_INPUT_PTX = 1
};
/* CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill. */
enum {
  KILN_CUDA_MAP_PLAIN = 0,
  KILN_CUDA_MAP_SWIZZLED_128 = 3,
  KILN_CUDA_MAP_L2_128 = 2,
  KILN_CUDA_MAP_ZEROS = 0,
  KILN_CUDA_MAP_BYTES = 128 /* size and alignment of a CUtensorMap */
};
/* CUjit_option. */
enum { KILN_CUDA_ERROR_LOG = 5, KILN_CUDA_ERROR_LOG_BYTES = 6 };

/* CUDA_MEMCPY2D: rows of bytes, separated by a pitch. */
typedef struct kiln_cuda_area_t {
  size_t x, y;
  int memory;
  const void *host;
  kiln_cuda_address_t device;
  void *array;
  size_t pitch;
} kiln_cuda_area_t;
typedef struct kiln_cuda_copy_2d_t {
  kiln_cuda_area_t from, to;
  size_t width, height;
} kiln_cuda_copy_2d_t;

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct kiln_cuda_launch_attribute_t {
  int id;
  char padding[4];
  union {
    char bytes[64];
    unsigned cluster[3];
    int is_dependent_launch; /* programmatic stream serialisation: may begin early, and waits for preceding kernels
                                itself */
  } value;
} kiln_cuda_launch_attribute_t;
typedef struct kiln_cuda_launch_t {
  unsigned blocks[3], threads[3], shared_bytes;
  kiln_cuda_queue_t stream;
  kiln_cuda_launch_attribute_t *attributes;
  unsigned attribute_count;
} kiln_cuda_launch_t;

/* X(symbol, parameters): each returns a CUresult. */
#define KILN_CUDA_REQUIRED(X)                                                                                          \
  X(cuInit, unsigned flags)                                                                                            \
  X(cuDriverGetVersion, int *version)                                                                                  \
  X(cuGetErrorName, int result, const char **name)                                                                     \
  X(cuGetErrorString, int result, const char **text)                                                                   \
  X(cuDeviceGetCount, int *count)                                                                                      \
  X(cuDeviceGet, int *device, int ordinal)                                                                             \
  X(cuDeviceGetAttribute, int *value, int attribute, int device)                                                       \
  X(cuDevicePrimaryCtxRetain, kiln_cuda_context_t *context, int device)                                                \
  X(cuDevicePrimaryCtxRelease_v2, int device)                                                                          \
  X(cuCtxPushCurrent_v2, kiln_cuda_context_t context)                                                                  \
  X(cuCtxPopCurrent_v2, kiln_cuda_context_t *context)                                                                  \
  X(cuCtxGetDevice, int *device)                                                                                       \
  X(cuModuleLoadDataEx, kiln_cuda_loaded_t *loaded, const void *image, unsigned count, int *options, void **values)    \
  X(cuModuleUnload, kiln_cuda_loaded_t loaded)                                                                         \
  X(cuModuleGetFunction, kiln_cuda_entry_t *function, kiln_cuda_loaded_t loaded, const char *name)                     \
  X(cuFuncSetAttribute, kiln_cuda_entry_t function, int attribute, int value)                                          \
  X(cuLinkCreate_v2, unsigned count, int *options, void **values, kiln_cuda_link_t *link)                              \
  X(cuLinkAddData_v2, kiln_cuda_link_t link, int type, const void *data, size_t bytes, const char *name,               \
    unsigned count, int *options, void **values)                                                                       \
  X(cuLinkComplete, kiln_cuda_link_t link, void **cubin, size_t *bytes)                                                \
  X(cuLinkDestroy, kiln_cuda_link_t link)                                                                              \
  X(cuMemAlloc_v2, kiln_cuda_address_t *address, size_t bytes)                                                         \
  X(cuMemFree_v2, kiln_cuda_address_t address)                                                                         \
  X(cuMemHostAlloc, void **memory, size_t bytes, unsigned flags)                                                       \
  X(cuMemFreeHost, void *memory)                                                                                       \
  X(cuMemcpyHtoDAsync_v2, kiln_cuda_address_t to, const void *from, size_t bytes, kiln_cuda_queue_t stream)            \
  X(cuMemcpyDtoHAsync_v2, void *to, kiln_cuda_address_t from, size_t bytes, kiln_cuda_queue_t stream)                  \
  X(cuMemcpyDtoDAsync_v2, kiln_cuda_address_t to, kiln_cuda_address_t from, size_t bytes, kiln_cuda_queue_t stream)    \
  X(cuMemcpy2DAsync_v2, const kiln_cuda_copy_2d_t *copy, kiln_cuda_queue_t stream)                                     \
  X(cuMemsetD8Async, kiln_cuda_address_t to, unsigned char value, size_t bytes, kiln_cuda_queue_t stream)              \
  X(cuStreamCreate, kiln_cuda_queue_t *stream, unsigned flags)                                                         \
  X(cuStreamDestroy_v2, kiln_cuda_queue_t stream)                                                                      \
  X(cuStreamSynchronize, kiln_cuda_queue_t stream)                                                                     \
  X(cuStreamIsCapturing, kiln_cuda_queue_t stream, int *status)                                                        \
  X(cuStreamBeginCapture_v2, kiln_cuda_queue_t stream, int mode)                                                       \
  X(cuStreamEndCapture, kiln_cuda_queue_t stream, kiln_cuda_recording_t *graph)                                        \
  X(cuGraphDestroy, kiln_cuda_recording_t graph)                                                                       \
  X(cuGraphLaunch, kiln_cuda_executable_t executable, kiln_cuda_queue_t stream)                                        \
  X(cuGraphExecDestroy, kiln_cuda_executable_t executable)                                                             \
  X(cuLaunchKernel, kiln_cuda_entry_t function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,               \
    unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes, kiln_cuda_queue_t stream,       \
    void **parameters, void **extra)
/* Functions of drivers since CUDA 11.4, 11.8 and 12.0; null in older ones. */
#define KILN_CUDA_OPTIONAL(X)                                                                                          \
  X(cuGraphInstantiateWithFlags, kiln_cuda_executable_t *executable, kiln_cuda_recording_t graph,                      \
    unsigned long long flags)                                                                                          \
  X(cuLaunchKernelEx, const kiln_cuda_launch_t *launch, kiln_cuda_entry_t function, void **parameters, void **extra)   \
  X(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *address, const uint64_t *extents,                \
    const uint64_t *pitches, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion,   \
    int fill)

/* The opened driver. Each model has a table, since a program has no global state. */
typedef struct kiln_cuda_driver_t {
#define KILN_CUDA_POINTER(symbol, ...) int (*symbol)(__VA_ARGS__);
  KILN_CUDA_REQUIRED(KILN_CUDA_POINTER)
  KILN_CUDA_OPTIONAL(KILN_CUDA_POINTER)
#undef KILN_CUDA_POINTER
  void *library;
} kiln_cuda_driver_t;

/* Opens libcuda.so.1, or the file that the environment variable KILN_CUDA_DRIVER names, and initialises it.
 * KILN_NO_DEVICE: there is none, it is too old, or initialisation fails. */
kiln_status_t kiln_cuda_driver_open(kiln_cuda_driver_t *driver, kiln_error_t *error);
/* Accepts a driver that was not opened. The library stays loaded, since the process may have threads of it. */
void kiln_cuda_driver_close(kiln_cuda_driver_t *driver);

/* "CUDA_ERROR_INVALID_VALUE"; never null. */
const char *kiln_cuda_error_name(const kiln_cuda_driver_t *driver, int result);
const char *kiln_cuda_error_text(const kiln_cuda_driver_t *driver, int result);
/* Whether the context is unusable after this CUresult. */
bool kiln_cuda_error_is_final(int result);

#ifdef __cplusplus
}
#endif
#endif /* KILN_CUDA_DRIVER_H */
