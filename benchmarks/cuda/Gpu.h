// SPDX-License-Identifier: Apache-2.0
//
// The GPU of the benchmarks: its description, and the time that work takes in its stream, measured by events. Any
// failure ends the program, since later measurements would be worthless.
#pragma once

#include "compiler/tuner/CudaTiming.h"

#include <functional>
#include <memory>
#include <string>

namespace kiln::bench {

class Gpu {
public:
  /// Opens the first GPU; null without a driver or a GPU, and `why` says what is missing.
  static std::unique_ptr<Gpu> open(std::string &why);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Returns name, compute capability, driver and maximum clocks.
  std::string describe() const;

  kiln_cuda_queue_t stream() const { return queue; }

  using Work = std::function<void()>; // enqueues something in the stream
  /// Returns the seconds from start to end of the work.
  double time(const Work &work) const;
  /// Captures the work as a graph, which may be launched any number of times.
  Work record(const Work &work) const;
  /// Returns a device copy that reads and writes `bytes` in total, half of them each.
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
