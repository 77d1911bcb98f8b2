// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver API that the fake driver exports. A client finds them by dlsym; tests take the types
// of their function pointers from this file.
#pragma once

#include "CudaTypes.h"

#define KILN_CUDA_API extern "C" [[gnu::visibility("default")]]

KILN_CUDA_API CUresult cuInit(unsigned flags);
KILN_CUDA_API CUresult cuDriverGetVersion(int *version);
KILN_CUDA_API CUresult cuGetErrorName(CUresult error, const char **name);
KILN_CUDA_API CUresult cuGetErrorString(CUresult error, const char **words);

KILN_CUDA_API CUresult cuDeviceGetCount(int *count);
KILN_CUDA_API CUresult cuDeviceGet(CUdevice *device, int ordinal);
KILN_CUDA_API CUresult cuDeviceGetName(char *name, int length, CUdevice device);
KILN_CUDA_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
KILN_CUDA_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
KILN_CUDA_API CUresult cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice device);

KILN_CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
KILN_CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
KILN_CUDA_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
KILN_CUDA_API CUresult cuCtxDestroy_v2(CUcontext context);
KILN_CUDA_API CUresult cuCtxGetCurrent(CUcontext *context);
KILN_CUDA_API CUresult cuCtxSetCurrent(CUcontext context);
KILN_CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context);
KILN_CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *context);
KILN_CUDA_API CUresult cuCtxGetDevice(CUdevice *device);
KILN_CUDA_API CUresult cuCtxSynchronize();

KILN_CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image);
KILN_CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                          void **values);
KILN_CUDA_API CUresult cuModuleUnload(CUmodule module);
KILN_CUDA_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
KILN_CUDA_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
KILN_CUDA_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
KILN_CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                                   std::size_t dynamicShared);

KILN_CUDA_API CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *state);
KILN_CUDA_API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, std::size_t size,
                                        const char *name, unsigned count, CUjit_option *options, void **values);
KILN_CUDA_API CUresult cuLinkComplete(CUlinkState state, void **cubin, std::size_t *size);
KILN_CUDA_API CUresult cuLinkDestroy(CUlinkState state);

KILN_CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, std::size_t bytes);
KILN_CUDA_API CUresult cuMemFree_v2(CUdeviceptr pointer);
KILN_CUDA_API CUresult cuMemGetInfo_v2(std::size_t *free, std::size_t *total);
KILN_CUDA_API CUresult cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned flags);
KILN_CUDA_API CUresult cuMemAllocHost_v2(void **pointer, std::size_t bytes);
KILN_CUDA_API CUresult cuMemFreeHost(void *pointer);
KILN_CUDA_API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer);

KILN_CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, std::size_t bytes);
KILN_CUDA_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, std::size_t bytes);
KILN_CUDA_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
KILN_CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t bytes, CUstream stream);
KILN_CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes, CUstream stream);
KILN_CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
KILN_CUDA_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
KILN_CUDA_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count);
KILN_CUDA_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream);
KILN_CUDA_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream);

KILN_CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned flags);
KILN_CUDA_API CUresult cuStreamDestroy_v2(CUstream stream);
KILN_CUDA_API CUresult cuStreamSynchronize(CUstream stream);
KILN_CUDA_API CUresult cuStreamQuery(CUstream stream);
KILN_CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
KILN_CUDA_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
KILN_CUDA_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
KILN_CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
KILN_CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);

KILN_CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags);
KILN_CUDA_API CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);
KILN_CUDA_API CUresult cuGraphDestroy(CUgraph graph);
KILN_CUDA_API CUresult cuGraphExecDestroy(CUgraphExec executable);
KILN_CUDA_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, std::size_t *count);

KILN_CUDA_API CUresult cuEventCreate(CUevent *event, unsigned flags);
KILN_CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream);
KILN_CUDA_API CUresult cuEventSynchronize(CUevent event);
KILN_CUDA_API CUresult cuEventQuery(CUevent event);
KILN_CUDA_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
KILN_CUDA_API CUresult cuEventDestroy_v2(CUevent event);

KILN_CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                                      CUstream stream, void **parameters, void **extra);
KILN_CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                        void **extra);
KILN_CUDA_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, std::uint32_t rank, void *address,
                                              const std::uint64_t *extents, const std::uint64_t *strides,
                                              const std::uint32_t *box, const std::uint32_t *elementStrides,
                                              int interleave, int swizzle, int l2Promotion, int outOfBounds);
