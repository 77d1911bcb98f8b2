// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver functions that time work and capture graphs. The runtime library does not need them; benchmarks use
// them, too.
#pragma once

#include "runtime/src/cuda/cuda_driver.h"

/// X(symbol, parameters): each returns a CUresult.
#define KILN_CUDA_TIMING(X)                                                                                            \
  X(cuEventCreate, void **event, unsigned flags)                                                                       \
  X(cuEventDestroy_v2, void *event)                                                                                    \
  X(cuEventRecord, void *event, kiln_cuda_queue_t stream)                                                              \
  X(cuEventSynchronize, void *event)                                                                                   \
  X(cuEventElapsedTime, float *milliseconds, void *start, void *end)                                                   \
  X(cuStreamBeginCapture_v2, kiln_cuda_queue_t stream, int mode)                                                       \
  X(cuStreamEndCapture, kiln_cuda_queue_t stream, void **graph)                                                        \
  X(cuGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)                             \
  X(cuGraphLaunch, void *executable, kiln_cuda_queue_t stream)                                                         \
  X(cuGraphExecDestroy, void *executable)                                                                              \
  X(cuGraphDestroy, void *graph)
