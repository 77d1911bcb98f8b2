// SPDX-License-Identifier: Apache-2.0
//
// Times work on a GPU with CUDA events. Only the tuner loads the driver functions for that: the runtime library does
// not need them.
#pragma once

#include "compiler/tuner/CudaTiming.h"
#include "runtime/src/cuda/cuda_model.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace kiln {

class CudaTimer {
public:
  /// Creates a timer for the model's context, which must outlive it. Fails if the driver lacks a function.
  static llvm::Expected<std::unique_ptr<CudaTimer>> create(kiln_cuda_t &cuda);
  ~CudaTimer();
  CudaTimer(const CudaTimer &) = delete;
  CudaTimer &operator=(const CudaTimer &) = delete;

  using Enqueue = llvm::function_ref<llvm::Error()>;

  /// Returns the seconds from the start to the end of the work enqueued in the model's stream.
  llvm::Expected<double> time(Enqueue enqueue);
  /// Like time(), for work that is first captured as a CUDA graph and has run once, which excludes the host's overhead
  /// of launching many short kernels.
  llvm::Expected<double> timeRecorded(Enqueue enqueue);

private:
  explicit CudaTimer(kiln_cuda_t &cuda) : cuda(cuda) {}
  llvm::Error check(int result, const char *symbol) const;
  llvm::Error record(Enqueue enqueue, void *&executable);
  llvm::Expected<double> timeEntered(Enqueue enqueue);

  kiln_cuda_t &cuda;
  void *start = nullptr, *end = nullptr;
#define KILN_CUDA_POINTER(symbol, ...) int (*symbol)(__VA_ARGS__) = nullptr;
  KILN_CUDA_TIMING(KILN_CUDA_POINTER)
#undef KILN_CUDA_POINTER
};

} // namespace kiln
