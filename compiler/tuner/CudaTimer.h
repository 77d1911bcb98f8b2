// SPDX-License-Identifier: Apache-2.0
//
// Times of work on a GPU, by the events of its driver. The functions for that are the tuner's alone: the run time does
// without them.
#pragma once

#include "compiler/tuner/CudaTiming.h"
#include "runtime/src/cuda_model.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace kiln {

class CudaTimer {
public:
  /// For the model's context, which must outlive it. Fails if the driver lacks a function.
  static llvm::Expected<std::unique_ptr<CudaTimer>> create(kiln_cuda_t &cuda);
  ~CudaTimer();
  CudaTimer(const CudaTimer &) = delete;
  CudaTimer &operator=(const CudaTimer &) = delete;

  using Enqueue = llvm::function_ref<llvm::Error()>;

  /// Seconds from the start of what is enqueued in the model's stream to its end.
  llvm::Expected<double> time(Enqueue enqueue);
  /// The same of work that is recorded as a graph before, and has run once: what the host takes to launch many short
  /// kernels does not count.
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
