// SPDX-License-Identifier: Apache-2.0
//
// The types and constants of the CUDA driver API that the fake driver knows, under the names and with the values of the
// CUDA documentation. They are declared here so that no part of NVIDIA's toolkit is needed.
#pragma once

#include <cstddef>
#include <cstdint>

// NAME, value, the driver's description of the error.
#define KILN_CUDA_RESULTS(X)                                                                                           \
  X(CUDA_SUCCESS, 0, "no error")                                                                                       \
  X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                                                   \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                      \
  X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                                             \
  X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                                                               \
  X(CUDA_ERROR_STUB_LIBRARY, 34, "CUDA driver is a stub library")                                                      \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")                            \
  X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                                   \
  X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                          \
  X(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                                   \
  X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                         \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")                     \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                                          \
  X(CUDA_ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed")                                                       \
  X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221, "PTX JIT compiler library not found")                                      \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.")           \
  X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223, "PTX JIT compilation was disabled")                                      \
  X(CUDA_ERROR_INVALID_SOURCE, 300, "device kernel image is invalid")                                                  \
  X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303, "shared object initialization failed")                                  \
  X(CUDA_ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")                          \
  X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                         \
  X(CUDA_ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")                           \
  X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                                               \
  X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                                                     \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                       \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                                \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                                         \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                                      \
  X(CUDA_ERROR_ASSERT, 710, "device-side assert triggered")                                                            \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714, "hardware stack error")                                                      \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")                                     \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                                          \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717, "operation not supported on global/shared address space")                   \
  X(CUDA_ERROR_INVALID_PC, 718, "invalid program counter")                                                             \
  X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                       \
  X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                                                          \
  X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                                          \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "system not yet initialized")                                                    \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, "system has unsupported display driver / cuda driver combination")         \
  X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, "forward compatibility was attempted on non supported HW")         \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                    \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")             \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")           \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")                  \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                                     \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")               \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, "operation would make the legacy stream depend on a capturing one")       \
  X(CUDA_ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")         \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "attempt to terminate a capture from another thread")                 \
  X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, "misconfigured cluster dimensions")                                          \
  X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum CUresult : int {
#define KILN_CUDA_RESULT(name, value, words) name = value,
  KILN_CUDA_RESULTS(KILN_CUDA_RESULT)
#undef KILN_CUDA_RESULT
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUgraphNode = struct CUgraphNode_st *;
using CUlinkState = struct CUlinkState_st *;

// Enumerations are plain integers here, as wide as C's: a client may pass a value that is no enumerator.
using CUdevice_attribute = int;
using CUfunction_attribute = int;
using CUpointer_attribute = int;
using CUjit_option = int;
using CUjitInputType = int;
using CUmemorytype = unsigned;
using CUstreamCaptureMode = int;
using CUstreamCaptureStatus = int;
using CUlaunchAttributeID = int;

struct CUuuid {
  char bytes[16];
};

struct CUDA_MEMCPY2D {
  std::size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  std::size_t srcPitch;
  std::size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  std::size_t dstPitch;
  std::size_t WidthInBytes, Height;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  union {
    char pad[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int cooperative;
    int programmaticStreamSerializationAllowed;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};

static_assert(sizeof(CUDA_MEMCPY2D) == 128 && sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56);

/// The constants that the fake driver and its tests use.
namespace kiln::fake {
inline constexpr unsigned streamNonBlocking = 1, eventDisableTiming = 2;
inline constexpr int captureGlobal = 0, captureThreadLocal = 1, captureRelaxed = 2;
inline constexpr int captureStatusNone = 0, captureStatusActive = 1, captureStatusInvalidated = 2;
inline constexpr int jitInfoLog = 3, jitInfoLogBytes = 4, jitErrorLog = 5, jitErrorLogBytes = 6;
inline constexpr int inputCubin = 0, inputPtx = 1;
inline constexpr int launchClusterDimension = 4;
inline constexpr int launchProgrammaticStreamSerialization = 6;
inline constexpr int functionMaxThreads = 0, functionStaticShared = 1, functionConstants = 2, functionLocal = 3,
                     functionRegisters = 4, functionPtxVersion = 5, functionBinaryVersion = 6,
                     functionMaxDynamicShared = 8, functionCarveout = 9, functionNonPortableCluster = 14;
inline constexpr unsigned memoryHost = 1, memoryDevice = 2, memoryArray = 3, memoryUnified = 4;
inline constexpr int pointerContext = 1, pointerMemoryType = 2, pointerDevicePointer = 3, pointerHostPointer = 4,
                     pointerDevice = 9, pointerRangeStart = 11, pointerRangeSize = 12;
inline const auto launchParameterBuffer = reinterpret_cast<void *>(1),
                  launchParameterBytes = reinterpret_cast<void *>(2);
} // namespace kiln::fake
