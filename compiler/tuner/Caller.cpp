// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Caller.h"

#include "runtime/src/model.h"

#include <chrono>
#include <fmt/format.h>

namespace kiln {

Caller::Caller(const Executor &executor, int64_t scratchBytes)
    : stride(KILN_ARENA_ROUND(scratchBytes)), scratch(executor.workers() * stride + KILN_ARENA_ALIGNMENT),
      workers(executor.workers()) {
  uintptr_t begin = KILN_ARENA_ROUND(reinterpret_cast<uintptr_t>(scratch.data()));
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i] = {};
    workers[i].workers = workers.data();
    workers[i].top = reinterpret_cast<char *>(begin + i * stride);
    workers[i].end = workers[i].top + stride;
  }
  workers[0].executor = workers.size() > 1 ? executor.get() : nullptr;
}

llvm::Error Caller::call(const LoadedKernel &kernel, const KernelData &data, size_t weights) {
  words.assign({reinterpret_cast<uint64_t>(workers.data())});
  llvm::ArrayRef<uint64_t> arguments = data.arguments(weights);
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (int result = kernel.call(words))
    return llvm::createStringError(fmt::format("the kernel returned {}", result));
  return llvm::Error::success();
}

double Caller::time(const LoadedKernel &kernel, const KernelData &data, unsigned repeats) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  for (unsigned i = 0; i < repeats; ++i) {
    workers[0].is_backward = data.isStep() && rotation % 2;
    llvm::consumeError(call(kernel, data, rotation++));
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

} // namespace kiln
