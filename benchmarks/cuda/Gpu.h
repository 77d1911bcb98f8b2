// SPDX-License-Identifier: Apache-2.0
//
// The GPU of the benchmarks: what it is, and the time that work takes in its stream, by events. What fails on it ends
// the program, since nothing that follows would be worth its time.
#pragma once

#include "compiler/tuner/CudaTiming.h"

#include <functional>
#include <memory>
#include <string>

namespace kiln::bench {

class Gpu {
public:
  /// The first one; null without a driver or a GPU, and `why` says what is missing.
  static std::unique_ptr<Gpu> open(std::string &why);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Name, compute capability, driver, highest clocks.
  std::string describe() const;

  kiln_cuda_queue_t stream() const { return queue; }

  using Work = std::function<void()>; // enqueues something in the stream
  /// Seconds from its start to its end.
  double time(const Work &work) const;
  /// The same work as a graph; to be enqueued as often as wanted.
  Work record(const Work &work) const;
  /// A copy on the GPU that reads and writes so many bytes, half of them each.
  Work makeCopy(std::size_t bytes) const;

private:
  Gpu() = default;
  void check(int result, const char *function) const;

  kiln_cuda_driver_t driver = {};
  int device = 0;
  kiln_cuda_context_t context = nullptr;
  kiln_cuda_queue_t queue = nullptr;
  void *start = nullptr, *end = nullptr;
#define KILN_CUDA_POINTER(symbol, ...) int (*symbol)(__VA_ARGS__) = nullptr;
  KILN_CUDA_TIMING(KILN_CUDA_POINTER)
#undef KILN_CUDA_POINTER
};

} // namespace kiln::bench
