// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/CudaTimer.h"

#include "llvm/ADT/ScopeExit.h"
#include <dlfcn.h>

namespace kiln {

namespace {

/// Makes the model's context current while it exists.
class Entered {
public:
  explicit Entered(kiln_cuda_t &cuda) : cuda(cuda), status(kiln_cuda_enter(&cuda, &error)) {}
  ~Entered() {
    if (!status)
      kiln_cuda_leave(&cuda);
  }
  llvm::Error problem() const { return status ? llvm::createStringError(error.message) : llvm::Error::success(); }

private:
  kiln_cuda_t &cuda;
  kiln_error_t error = {};
  kiln_status_t status;
};

} // namespace

llvm::Error CudaTimer::check(int result, const char *symbol) const {
  kiln_error_t error = {};
  return kiln_cuda_check(&cuda, result, symbol, &error) ? llvm::createStringError(error.message)
                                                        : llvm::Error::success();
}

#define KILN_CUDA_TRY(symbol, ...)                                                                                     \
  if (llvm::Error error = check(symbol(__VA_ARGS__), #symbol))                                                         \
    return error;

llvm::Expected<std::unique_ptr<CudaTimer>> CudaTimer::create(kiln_cuda_t &cuda) {
  std::unique_ptr<CudaTimer> timer(new CudaTimer(cuda));
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(cuda.driver.library, symbol));
    return function != nullptr;
  };
#define KILN_CUDA_FIND(symbol, ...)                                                                                    \
  if (!find(#symbol, timer->symbol))                                                                                   \
    return llvm::createStringError("CUDA driver: no timing function; expected " #symbol ", got a driver without it");
  KILN_CUDA_TIMING(KILN_CUDA_FIND)
#undef KILN_CUDA_FIND
  Entered entered(cuda);
  if (llvm::Error error = entered.problem())
    return error;
  for (void **event : {&timer->start, &timer->end})
    if (llvm::Error error = timer->check(timer->cuEventCreate(event, 0), "cuEventCreate"))
      return error;
  return timer;
}

CudaTimer::~CudaTimer() {
  Entered entered(cuda);
  if (llvm::Error error = entered.problem()) {
    llvm::consumeError(std::move(error));
    return;
  }
  for (void *event : {start, end})
    if (event)
      cuEventDestroy_v2(event);
}

llvm::Expected<double> CudaTimer::timeEntered(Enqueue enqueue) {
  float milliseconds = 0;
  KILN_CUDA_TRY(cuEventRecord, start, cuda.stream)
  if (llvm::Error error = enqueue())
    return error;
  KILN_CUDA_TRY(cuEventRecord, end, cuda.stream)
  KILN_CUDA_TRY(cuEventSynchronize, end)
  KILN_CUDA_TRY(cuEventElapsedTime, &milliseconds, start, end)
  return double(milliseconds) * 1e-3;
}

llvm::Expected<double> CudaTimer::time(Enqueue enqueue) {
  Entered entered(cuda);
  if (llvm::Error error = entered.problem())
    return error;
  return timeEntered(enqueue);
}

llvm::Error CudaTimer::record(Enqueue enqueue, void *&executable) {
  static constexpr int ofThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  void *graph = nullptr;
  KILN_CUDA_TRY(cuStreamBeginCapture_v2, cuda.stream, ofThisThread)
  llvm::Error failed = enqueue();
  llvm::Error ended = check(cuStreamEndCapture(cuda.stream, &graph), "cuStreamEndCapture");
  if (llvm::Error error = llvm::joinErrors(std::move(failed), std::move(ended)))
    return error;
  const auto release = llvm::make_scope_exit([&] { cuGraphDestroy(graph); });
  KILN_CUDA_TRY(cuGraphInstantiateWithFlags, &executable, graph, 0)
  return llvm::Error::success();
}

llvm::Expected<double> CudaTimer::timeRecorded(Enqueue enqueue) {
  Entered entered(cuda);
  if (llvm::Error error = entered.problem())
    return error;
  void *executable = nullptr;
  if (llvm::Error error = record(enqueue, executable))
    return error;
  const auto release = llvm::make_scope_exit([&] { cuGraphExecDestroy(executable); });
  auto launch = [&] { return check(cuGraphLaunch(executable, cuda.stream), "cuGraphLaunch"); };
  if (llvm::Error error = launch()) // the first launch uploads the graph to the GPU
    return error;
  return timeEntered(launch);
}

} // namespace kiln
