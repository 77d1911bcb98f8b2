// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cuda/Gpu.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace kiln::bench {

#define KILN_BENCH_CALL(symbol, ...) check(symbol(__VA_ARGS__), #symbol)

void Gpu::check(int result, const char *function) const {
  if (result == 0)
    return;
  std::fprintf(stderr, "error: %s: %s (%d)\n", function, kiln_cuda_error_name(&driver, result), result);
  std::exit(1);
}

std::unique_ptr<Gpu> Gpu::open(std::string &why) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  kiln_error_t error = {};
  if (kiln_cuda_driver_open(&gpu->driver, &error)) {
    why = error.message;
    return nullptr;
  }
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(gpu->driver.library, symbol));
    if (!function)
      why = std::string("the CUDA driver has no ") + symbol;
  };
#define KILN_BENCH_FIND(symbol, ...) find(#symbol, gpu->symbol);
  KILN_CUDA_TIMING(KILN_BENCH_FIND)
#undef KILN_BENCH_FIND
  int count = 0;
  gpu->check(gpu->driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (count == 0)
    why = "the CUDA driver finds no GPU";
  if (!why.empty())
    return nullptr;
  gpu->check(gpu->driver.cuDeviceGet(&gpu->device, 0), "cuDeviceGet");
  gpu->check(gpu->driver.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
  gpu->check(gpu->driver.cuCtxPushCurrent_v2(gpu->context), "cuCtxPushCurrent_v2");
  gpu->check(gpu->driver.cuStreamCreate(&gpu->queue, KILN_CUDA_NON_BLOCKING), "cuStreamCreate");
  for (void **event : {&gpu->start, &gpu->end})
    gpu->check(gpu->cuEventCreate(event, 0), "cuEventCreate");
  return gpu;
}

Gpu::~Gpu() {
  if (context)
    driver.cuDevicePrimaryCtxRelease_v2(device);
}

std::string Gpu::describe() const {
  auto attribute = [&](int number) {
    int value = 0;
    driver.cuDeviceGetAttribute(&value, number, device);
    return value;
  };
  char name[256] = "a GPU";
  int version = 0;
  if (auto getName = reinterpret_cast<int (*)(char *, int, int)>(dlsym(driver.library, "cuDeviceGetName")))
    getName(name, int(sizeof name), device);
  if (auto getVersion = reinterpret_cast<int (*)(int *)>(dlsym(driver.library, "cuDriverGetVersion")))
    getVersion(&version);
  char text[400]; // CUdevice_attribute 13, 16, 36: clock in kHz, multiprocessors, memory clock in kHz
  std::snprintf(text, sizeof text, "%s, %d.%d, %d multiprocessors, at most %d MHz, memory %d MHz; driver of CUDA %d.%d",
                name, attribute(KILN_CUDA_CAPABILITY_MAJOR), attribute(KILN_CUDA_CAPABILITY_MINOR), attribute(16),
                attribute(13) / 1000, attribute(36) / 1000, version / 1000, version % 1000 / 10);
  return text;
}

double Gpu::time(const Work &work) const {
  float milliseconds = 0;
  KILN_BENCH_CALL(cuEventRecord, start, queue);
  work();
  KILN_BENCH_CALL(cuEventRecord, end, queue);
  KILN_BENCH_CALL(cuEventSynchronize, end);
  KILN_BENCH_CALL(cuEventElapsedTime, &milliseconds, start, end);
  return double(milliseconds) * 1e-3;
}

Gpu::Work Gpu::record(const Work &work) const {
  static constexpr int ofThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  void *graph = nullptr, *made = nullptr;
  KILN_BENCH_CALL(cuStreamBeginCapture_v2, queue, ofThisThread);
  work();
  KILN_BENCH_CALL(cuStreamEndCapture, queue, &graph);
  KILN_BENCH_CALL(cuGraphInstantiateWithFlags, &made, graph, 0);
  KILN_BENCH_CALL(cuGraphDestroy, graph);
  std::shared_ptr<void> executable(made, [destroy = cuGraphExecDestroy](void *each) { destroy(each); });
  return [this, executable] { KILN_BENCH_CALL(cuGraphLaunch, executable.get(), queue); };
}

Gpu::Work Gpu::makeCopy(std::size_t bytes) const {
  const std::size_t half = bytes / 2 + 1;
  kiln_cuda_address_t from = 0, to = 0;
  check(driver.cuMemAlloc_v2(&from, half), "cuMemAlloc_v2");
  check(driver.cuMemAlloc_v2(&to, half), "cuMemAlloc_v2");
  std::shared_ptr<void> memory(nullptr, [free = driver.cuMemFree_v2, from, to](void *) { free(from), free(to); });
  return [this, half, from, to, memory] {
    check(driver.cuMemcpyDtoDAsync_v2(to, from, half, queue), "cuMemcpyDtoDAsync_v2");
  };
}

} // namespace kiln::bench
